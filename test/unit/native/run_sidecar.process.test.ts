import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  BunSidecarSocket,
  type BunSockets,
  isSocket,
} from "../../../src/adapters/native/run_sidecar.ts";
import { settle } from "./fakes.ts";

/** Bun's socket, which takes so many bytes until it is drained. */
class FakeBun implements BunSockets {
  room = Infinity;
  /** The sent bytes, and `end`. */
  readonly sent: string[] = [];
  handlers: Parameters<BunSockets["connect"]>[0]["socket"] | undefined;
  refuses = false;

  connect({ socket }: Parameters<BunSockets["connect"]>[0]) {
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
  const socket = new BunSidecarSocket(bun, 3, {
    data: (bytes) => void events.push(bytes.join("")),
    end: () => void events.push("end"),
  });
  return { socket, events };
}

describe("BunSidecarSocket", () => {
  it("keeps what is written before it is connected, although the bytes are only lent", async () => {
    const bun = new FakeBun();
    const { socket } = open(bun);
    const lent = new Uint8Array([1, 2]);
    socket.write(lent);
    lent.fill(9);
    await settle();
    socket.write(new Uint8Array([3]));
    assertEquals(bun.sent, ["12", "3"]);
  });

  it("sends the rest, in order, when there is room again", async () => {
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
    assertEquals(isSocket(-1), false);
    assertEquals(isSocket(9_999), false);
  });
});
