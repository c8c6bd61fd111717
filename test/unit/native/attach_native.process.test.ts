import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { Guest } from "../../../src/adapters/native/attach_native.ts";
import { REQUEST } from "../../../src/adapters/native/frames.ts";
import type { GuestLibrary, GuestRuntime } from "../../../src/adapters/native/guest_runtimes.ts";
import { fakeRegistry, fakeTool } from "../registry/fakes.ts";
import { call, frame, readReplies, type Reply, settle, strings, toolsOfRegistry } from "./fakes.ts";

/** libplue as a guest sees it, with one configuration waiting. */
class FakeLibrary implements GuestLibrary {
  readonly frames: Uint8Array[] = [frame(REQUEST.configure, 2, 1, strings(undefined, undefined))];
  readonly replies: Reply[] = [];
  readonly events: string[] = [];
  version = 1;
  descriptor = 0;
  threads = 0;
  takes = true;
  wake: (() => void) | undefined;

  plue_abi_version(): number {
    return this.version;
  }

  plue_guest_attach(wake: unknown): number {
    this.events.push(wake === null ? "attach by fd" : "attach by callback");
    return this.descriptor;
  }

  plue_guest_drain(buffer: Uint8Array, capacity: number): number {
    assertEquals(capacity, buffer.length);
    const [first] = this.frames;
    if (first === undefined) return 0;
    if (first.length > buffer.length) return -first.length;
    buffer.set(first);
    this.frames.shift();
    return first.length;
  }

  plue_guest_push(frames: Uint8Array, length: number): number {
    assertEquals(length, frames.length);
    this.replies.push(...readReplies(frames));
    return this.takes ? 0 : -1;
  }

  plue_guest_detach(): void {
    this.events.push("detach");
  }

  plue_guest_wakers(): number {
    this.events.push(`wakers ${this.threads}`);
    return this.threads === 0 ? 0 : this.threads--;
  }

  close(descriptor: number): number {
    this.events.push(`close ${descriptor}`);
    return 0;
  }

  /** A native thread calls a tool. */
  async execute(id: number, tool: string, params: string) {
    this.frames.push(frame(REQUEST.execute, 0, id, call(0, tool, params, undefined, undefined)));
    this.wake?.();
    await settle();
  }
}

function runtimeOf(library: FakeLibrary): GuestRuntime {
  return {
    name: "fake 1.0",
    wakes: ["callback", "fd"],
    open: () => library,
    callback(run) {
      library.wake = run;
      return { pointer: 1, close: () => library.events.push("close callback") };
    },
    watch(descriptor, run) {
      library.wake = run;
      library.events.push(`watch ${descriptor}`);
      return { close: () => library.events.push("close descriptor") };
    },
  };
}

const echo = fakeTool("echo", {
  parameters: { type: "object" },
  execute: (params: unknown) => params,
});

function attach(library: FakeLibrary, wake: "callback" | "fd" = "callback") {
  return Guest.attach({
    runtime: runtimeOf(library),
    library: "libfake.so",
    tools: toolsOfRegistry(fakeRegistry({ tools: [echo] })),
    wake,
    keepAlive: false,
  });
}

describe("Guest.attach()", () => {
  it("reads the waiting configuration without a wake", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    await settle();
    assertEquals(library.replies.map(({ type }) => type), ["tools", "hello"]);
    await guest.detach();
  });

  it("watches the descriptor if the option requests it", async () => {
    const library = new FakeLibrary();
    library.descriptor = 12;
    const guest = await attach(library, "fd");
    assertEquals(library.events, ["attach by fd", "watch 12"]);
    await library.execute(1, "echo", '{"a":1}');
    assertEquals(library.replies.at(-1)?.value, { a: 1 });
    await guest.detach();
    assertEquals(library.events.at(-1), "close descriptor");
  });

  it("rejects a library with another ABI, before it attaches", async () => {
    const library = new FakeLibrary();
    library.version = 2;
    const error = await assertRejects(() => attach(library), Error, "");
    assertStringIncludes(error.message, 'Cannot attach to "libfake.so": it has ABI 2, not 1');
    assertEquals(library.events, []);
  });

  it("frees its callback if a runtime is attached already", async () => {
    const library = new FakeLibrary();
    library.descriptor = -1;
    await assertRejects(() => attach(library), Error, "a runtime is attached already");
    assertEquals(library.events, ["attach by callback", "close callback"]);
  });

  it("detaches and closes the descriptor if it cannot be watched", async () => {
    const library = new FakeLibrary();
    library.descriptor = 12;
    const runtime = runtimeOf(library);
    await assertRejects(
      () =>
        Guest.attach({
          runtime: { ...runtime, watch: () => Promise.reject(new Error("no socket")) },
          library: "libfake.so",
          tools: toolsOfRegistry(fakeRegistry()),
          wake: "fd",
          keepAlive: true,
        }),
      Error,
      "no socket",
    );
    assertEquals(library.events, ["attach by fd", "detach", "close 12"]);
  });
});

describe("Guest after a wake", () => {
  it("reads every waiting frame", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    for (const id of [1, 2, 3]) {
      const payload = call(0, "echo", `{"id":${id}}`, undefined, undefined);
      library.frames.push(frame(REQUEST.execute, 0, id, payload));
    }
    library.wake?.();
    await settle();
    const results = library.replies.filter(({ type }) => type === "result");
    assertEquals(results.map(({ value }) => value), [{ id: 1 }, { id: 2 }, { id: 3 }]);
    await guest.detach();
  });

  it("reads the frames after an invalid one, which do not wake it again", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    const payload = call(0, "echo", '{"id":2}', undefined, undefined);
    library.frames.push(frame(99, 0, 1, new Uint8Array()));
    library.frames.push(frame(REQUEST.execute, 0, 2, payload));
    assertThrows(() => library.wake?.(), Error, "there is no type 99");
    while (library.frames.length > 0) await new Promise((resolve) => setTimeout(resolve, 0));
    await settle();
    assertEquals(library.replies.at(-1)?.value, { id: 2 });
    await guest.detach();
  });

  it("grows its buffer for a larger frame", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    const text = "x".repeat(900_000);
    const before = library.replies.length;
    await library.execute(1, "echo", JSON.stringify({ text }));
    // A call with large arguments lets others run in between.
    while (library.replies.length === before) {
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    assertEquals((library.replies.at(-1)?.value as { text: string }).text.length, 900_000);
    await library.execute(2, "echo", '{"a":1}');
    assertEquals(library.replies.at(-1)?.value, { a: 1 });
    await guest.detach();
  });
});

describe("Guest.detach()", () => {
  it("frees the callback only when no thread is about to call it", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    library.threads = 2;
    library.events.length = 0;
    await guest.detach();
    assertEquals(library.events, ["detach", "wakers 2", "wakers 1", "wakers 0", "close callback"]);
  });

  it("happens once, even if it is called repeatedly", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    await Promise.all([guest.detach(), guest.detach()]);
    assertEquals(library.events.filter((event) => event === "detach").length, 1);
  });

  it("neither reads nor sends frames afterwards", async () => {
    const library = new FakeLibrary();
    const guest = await attach(library);
    await settle();
    const leaving = guest.detach();
    library.replies.length = 0;
    await library.execute(1, "echo", "{}");
    assertEquals([library.frames.length, library.replies], [1, []]);
    await leaving;
  });
});
