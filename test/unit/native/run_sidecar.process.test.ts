import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { REQUEST } from "../../../src/adapters/native/frames.ts";
import * as sidecars from "../../../src/adapters/native/run_sidecar.ts";
import type { ToolContext } from "../../../src/tool/mod.ts";
import { fakeRegistry, fakeTool } from "../registry/fakes.ts";
import {
  call,
  frame,
  join,
  readReplies,
  type Reply,
  settle,
  strings,
  toolsOfRegistry,
} from "./fakes.ts";

/** A process with a host at the other end of its socket. */
function start(options: Partial<sidecars.SidecarProcess> = {}, registry = fakeRegistry()) {
  const replies: Reply[] = [];
  const events: string[] = [];
  let socket: sidecars.SidecarSocketEvents | undefined;
  const crash = sidecars.startSidecar({
    runtime: "fake 1.0",
    collectGarbage: () => void events.push("collect"),
    open(opened) {
      socket = opened;
      return {
        write: (bytes) => void replies.push(...readReplies(bytes)),
        end(then) {
          events.push("end");
          then();
        },
      };
    },
    load: () => Promise.resolve(toolsOfRegistry(registry)),
    exit: (code) => void events.push(`exit ${code}`),
    log: (error) => void events.push(`log ${(error as Error).name}`),
    ...options,
  });
  return {
    replies,
    events,
    crash,
    async send(...frames: readonly Uint8Array[]) {
      socket?.data(join(...frames));
      await settle();
    },
    async hangUp() {
      socket?.end();
      await settle();
    },
  };
}

const configure = frame(REQUEST.configure, 2, 1, strings("tools.ts", undefined));

describe("startSidecar()", () => {
  it("loads the module that the host names, and answers", async () => {
    const names: unknown[] = [];
    const tools = toolsOfRegistry(fakeRegistry({ tools: [fakeTool("a", { execute: () => 1 })] }));
    const host = start({
      load: (name) => {
        names.push(name);
        return Promise.resolve(tools);
      },
    });
    const payload = call(0, "a", undefined, undefined, undefined);
    await host.send(configure, frame(REQUEST.execute, 0, 7, payload));
    assertEquals(names, ["tools.ts"]);
    assertEquals(host.replies.map(({ type }) => type), ["tools", "hello", "result"]);
  });

  it("joins frames that arrive in pieces", async () => {
    const host = start();
    await host.send(configure.subarray(0, 20));
    assertEquals(host.replies, []);
    await host.send(configure.subarray(20));
    assertEquals(host.replies.map(({ type }) => type), ["tools", "hello"]);
  });

  it("ends after it has reported that there are no tools", async () => {
    const host = start({ load: () => Promise.reject(new Error("gone")) });
    await host.send(configure);
    assertEquals(host.replies.map(({ type, value }) => [type, value]), [["failed", "gone"]]);
    assertEquals(host.events, ["end", "exit 1"]);
  });

  for (
    const [thrown, message] of [
      [
        Object.assign(new RangeError("too far\nand more"), {
          stack: "RangeError: too far\n    at f (/home/a b/tools.ts:3:14)\n    at g (/x.ts:1:1)",
        }),
        "RangeError: too far (tools.ts:3:14)",
      ],
      [Object.assign(new Error("gone"), { stack: "Error: gone" }), "Error: gone"],
      [Object.assign(new Error("gone\rand\u2028more"), { stack: "" }), "Error: gone"],
      [{ password: "hunter2" }, "something other than an Error was thrown"],
    ] as const
  ) {
    it(`reports an uncaught exception: ${message}`, async () => {
      const host = start();
      await host.send(configure);
      host.crash(thrown);
      const failed = host.replies.filter(({ type }) => type === "failed");
      assertEquals(failed.map(({ value }) => value), [`The tool process ended: ${message}`]);
      assertEquals(host.events.slice(1), ["end", "exit 1"]);
    });
  }

  it("disposes of the tools and ends when the host closes, once", async () => {
    const disposed: string[] = [];
    const tool = fakeTool("a", {
      init: () => "state",
      dispose: (state: string) => void disposed.push(state),
      execute: () => 1,
    });
    const host = start({}, fakeRegistry({ tools: [tool] }));
    const payload = call(0, "a", undefined, undefined, undefined);
    await host.send(configure, frame(REQUEST.execute, 0, 7, payload));
    await host.send(frame(REQUEST.shutdown, 0, 0));
    await host.hangUp();
    await host.hangUp();
    assertEquals(disposed, ["state"]);
    assertEquals(host.events, ["exit 0"]);
  });

  it("aborts running calls when the host closes, and waits for them", async () => {
    let signal: AbortSignal | undefined;
    const tool = fakeTool("a", {
      execute: (_params: unknown, context: ToolContext) =>
        new Promise((_resolve, reject) => {
          signal = context.signal;
          context.signal.addEventListener("abort", () => reject(context.signal.reason));
        }),
    });
    const host = start({}, fakeRegistry({ tools: [tool] }));
    const payload = call(0, "a", undefined, undefined, undefined);
    await host.send(configure, frame(REQUEST.execute, 0, 7, payload));
    assertEquals([signal?.aborted, host.events], [false, []]);
    await host.hangUp();
    assertEquals([signal?.aborted, host.events], [true, ["exit 0"]]);
  });

  it("ends if the host closed before its first frame", async () => {
    const host = start();
    await host.hangUp();
    assertEquals(host.events, ["exit 0"]);
  });

  it("reports errors of disposed tools, and ends", async () => {
    const tool = fakeTool("a", {
      init: () => 1,
      dispose: () => {
        throw new Error("stuck");
      },
      execute: () => 1,
    });
    const host = start({}, fakeRegistry({ tools: [tool] }));
    const payload = call(0, "a", undefined, undefined, undefined);
    await host.send(configure, frame(REQUEST.execute, 0, 7, payload));
    await host.hangUp();
    assertEquals(host.events.at(-1), "exit 1");
    assertEquals(host.events.length, 2);
  });

  it("ends at an invalid frame", async () => {
    const host = start();
    await host.send(new Uint8Array(20).fill(0xff));
    assertEquals(host.events, ["log FrameError", "exit 1"]);
  });
});

/** Bun's socket, which accepts a number of bytes until it is drained. */
class FakeBun implements sidecars.BunSockets {
  room = Infinity;
  /** The sent bytes, and `end`. */
  readonly sent: string[] = [];
  handlers: Parameters<sidecars.BunSockets["connect"]>[0]["socket"] | undefined;
  refuses = false;

  connect({ socket }: Parameters<sidecars.BunSockets["connect"]>[0]) {
    if (this.refuses) return Promise.reject(new Error("no such descriptor"));
    this.handlers = socket;
    return Promise.resolve({
      write: (bytes: Uint8Array) => {
        if (this.room < 0) return -1;
        const count = Math.min(bytes.length, this.room);
        this.room -= count;
        if (count > 0) this.sent.push(bytes.subarray(0, count).join(""));
        return count;
      },
      end: () => void this.sent.push("end"),
    });
  }
}

function open(bun: FakeBun) {
  const events: string[] = [];
  const socket = new sidecars.BunSidecarSocket(bun, 3, {
    data: (bytes) => void events.push(bytes.join("")),
    end: () => void events.push("end"),
  });
  return { socket, events };
}

describe("BunSidecarSocket", () => {
  it("copies the bytes that are written before it is connected", async () => {
    const bun = new FakeBun();
    const { socket } = open(bun);
    const lent = new Uint8Array([1, 2]);
    socket.write(lent);
    lent.fill(9);
    await settle();
    socket.write(new Uint8Array([3]));
    assertEquals(bun.sent, ["12", "3"]);
  });

  it("sends the rest, in order, when the socket accepts bytes again", async () => {
    const bun = new FakeBun();
    const { socket } = open(bun);
    await settle();
    bun.room = 3;
    const lent = new Uint8Array([1, 2, 3, 4, 5]);
    socket.write(lent);
    lent.fill(9);
    socket.write(new Uint8Array([6, 7]));
    assertEquals(bun.sent, ["123"]);
    bun.room = 3;
    bun.handlers?.drain();
    bun.room = Infinity;
    bun.handlers?.drain();
    assertEquals(bun.sent, ["123", "45", "6", "7"]);
  });

  it("closes when everything is sent, and not before", async () => {
    const bun = new FakeBun();
    const { socket } = open(bun);
    await settle();
    bun.room = 1;
    socket.write(new Uint8Array([1, 2]));
    let closed = false;
    socket.end(() => closed = true);
    assertEquals(closed, false);
    bun.room = Infinity;
    bun.handlers?.drain();
    assertEquals([closed, bun.sent], [true, ["1", "2", "end"]]);
  });

  it("reports incoming bytes, and every way in which the host can end", async () => {
    const bun = new FakeBun();
    const { events } = open(bun);
    await settle();
    bun.handlers?.data(undefined, new Uint8Array([4]));
    bun.handlers?.end();
    bun.handlers?.close();
    bun.handlers?.error();
    assertEquals(events, ["4", "end", "end", "end"]);
  });

  it("reports a closed host when a write fails, or the host never existed", async () => {
    const bun = new FakeBun();
    const { socket, events } = open(bun);
    await settle();
    bun.room = 1;
    socket.write(new Uint8Array([1, 2]));
    bun.room = -1;
    bun.handlers?.drain();
    assertEquals(events, ["end"]);
    const none = new FakeBun();
    none.refuses = true;
    const never = open(none);
    await settle();
    assertEquals(never.events, ["end"]);
  });
});

describe("isSocket()", () => {
  it("is false for an invalid descriptor", () => {
    assertEquals(sidecars.isSocket(-1), false);
    assertEquals(sidecars.isSocket(9_999), false);
  });
});
