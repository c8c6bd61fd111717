import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { denoGuest } from "../../../src/adapters/native/guest_deno.ts";
import type { GuestLibrary } from "../../../src/adapters/native/guest_library.ts";
import { nodeGuest } from "../../../src/adapters/native/guest_node.ts";

/** Calls every function of the seam. */
function useAll(library: GuestLibrary): unknown[] {
  const buffer = new Uint8Array(5);
  return [
    library.abiVersion(),
    library.attach(undefined),
    library.drain(buffer),
    library.push(buffer.subarray(2)),
    library.detach(),
    library.wakers(),
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

/** A foreign function that remembers its call, and answers 7. */
function foreign(calls: string[], name: string) {
  return (...args: readonly unknown[]) => {
    const shown = args.map((arg) => arg instanceof Uint8Array ? arg.length : String(arg));
    calls.push([name, ...shown].join(" "));
    return name.endsWith("detach") ? undefined : 7;
  };
}

describe("denoGuest()", () => {
  it("hands buffers on with their length, and loads a library once", () => {
    const calls: string[] = [];
    let loaded = 0;
    const guest = denoGuest({
      version: { deno: "2.9.6" },
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
  it("hands buffers on with their length, and loads a library once", async () => {
    const calls: string[] = [];
    let loaded = 0;
    const guest = await nodeGuest("24.0.0", {
      load: () => {
        loaded++;
        return {
          func: (prototype) => foreign(calls, /\w+(?=\()/.exec(prototype)?.[0] ?? ""),
        };
      },
    });
    assertEquals([guest.name, guest.wakes], ["node 24.0.0", ["fd"]]);
    const library = guest.open("/fake/node.so") as GuestLibrary;
    assertEquals(useAll(library), [7, 7, 7, 7, undefined, 7, 7]);
    assertEquals(calls, USED);
    assertStrictEquals(guest.open("/fake/node.so"), library);
    assertEquals(loaded, 1);
  });

  it("says which package it needs", async () => {
    await assertRejects(() => nodeGuest("24.0.0"), TypeError, 'Node needs the package "koffi"');
  });
});
