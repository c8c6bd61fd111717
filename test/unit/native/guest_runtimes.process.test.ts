import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  denoGuest,
  type GuestLibrary,
  hasSoundCallbacks,
  nodeGuest,
} from "../../../src/adapters/native/guest_runtimes.ts";

/** Calls every function. */
function useAll(library: GuestLibrary): unknown[] {
  const buffer = new Uint8Array(5);
  return [
    library.plue_abi_version(),
    library.plue_guest_attach(null),
    library.plue_guest_drain(buffer, 5),
    library.plue_guest_push(buffer.subarray(2), 3),
    library.plue_guest_detach(),
    library.plue_guest_wakers(),
    library.close(5),
  ];
}

const USED = [
  "plue_abi_version",
  "plue_guest_attach null",
  "plue_guest_drain 5 5",
  "plue_guest_push 3 3",
  "plue_guest_detach",
  "plue_guest_wakers",
  "close 5",
];

/** A foreign function that records its call, and returns 7. */
function foreign(calls: string[], name: string) {
  return (...args: readonly unknown[]) => {
    const shown = args.map((arg) => arg instanceof Uint8Array ? arg.length : String(arg));
    calls.push([name, ...shown].join(" "));
    return name.endsWith("detach") ? undefined : 7;
  };
}

describe("denoGuest()", () => {
  it("declares every function, and loads a library once", () => {
    const calls: string[] = [];
    let loaded = 0;
    const guest = denoGuest({
      version: { deno: "2.9.6" },
      UnsafePointerView: { getCString: String },
      dlopen: (_path, symbols) => {
        loaded++;
        const functions = Object.keys(symbols).map((name) => [name, foreign(calls, name)]);
        return { symbols: Object.fromEntries(functions) };
      },
    });
    assertEquals([guest.name, guest.wakes], ["deno 2.9.6", ["fd"]]);
    const library = guest.open("/fake/deno.so") as GuestLibrary;
    assertEquals(useAll(library), [7, 7, 7, 7, undefined, 7, 7]);
    assertEquals(calls, USED);
    assertStrictEquals(guest.open("/fake/deno.so"), library);
    assertEquals(loaded, 1);
  });
});

describe("nodeGuest()", () => {
  it("declares every function, and loads a library once", async () => {
    const calls: string[] = [];
    let loaded = 0;
    const guest = await nodeGuest("24.0.0", {
      load: () => {
        loaded++;
        return { func: (prototype) => foreign(calls, /\w+(?=\()/.exec(prototype)?.[0] ?? "") };
      },
    });
    assertEquals([guest.name, guest.wakes], ["node 24.0.0", ["fd"]]);
    const library = guest.open("/fake/node.so") as GuestLibrary;
    assertEquals(useAll(library), [7, 7, 7, 7, undefined, 7, 7]);
    assertEquals(calls, USED);
    assertStrictEquals(guest.open("/fake/node.so"), library);
    assertEquals(loaded, 1);
  });

  it("names the required package", async () => {
    await assertRejects(() => nodeGuest("24.0.0"), TypeError, 'Node needs the package "koffi"');
  });
});

describe("hasSoundCallbacks()", () => {
  for (
    const [version, sound] of [
      ["1.3.14", false],
      ["1.4.0", true],
      ["1.4.5", true],
      ["1.10.0", true],
      ["2.0.0", true],
      ["0.9.0", false],
      ["", false],
    ] as const
  ) {
    it(`returns ${sound} for Bun ${version}`, () =>
      assertEquals(hasSoundCallbacks(version), sound));
  }
});
