import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  FrameError,
  FrameStream,
  FrameWriter,
  readFrames,
  readStrings,
  REPLY,
} from "../../../src/adapters/native/frames.ts";
import { frame, join, readReplies, strings } from "./fakes.ts";

function read(bytes: Uint8Array) {
  const frames: unknown[] = [];
  const count = readFrames(bytes, ({ type, flags, id, payload }) => {
    frames.push([type, flags, id, [...payload]]);
  });
  return { frames, count };
}

describe("readFrames()", () => {
  it("reads type, flags, id and payload of each frame in a row", () => {
    const id = 2 ** 32 * 5 + 4_000_000_000;
    const bytes = join(frame(1, 1, id, new Uint8Array([1, 2])), frame(3, 0, 0));
    assertEquals(read(bytes), { frames: [[1, 1, id, [1, 2]], [3, 0, 0, []]], count: bytes.length });
  });

  it("does not read an incomplete frame, wherever it is cut", () => {
    const whole = frame(2, 0, 1, new Uint8Array([9]));
    const bytes = join(whole, whole);
    for (let cut = 0; cut < whole.length; cut++) {
      assertEquals(read(bytes.subarray(0, whole.length + cut)).count, whole.length);
    }
  });

  for (const size of [0, 11, 256 * 1024 * 1024 - 3, 0xffff_ffff]) {
    it(`rejects a frame with the length ${size}`, () => {
      const bytes = new Uint8Array(16);
      new DataView(bytes.buffer).setUint32(0, size, true);
      assertThrows(() => read(bytes), FrameError, "Cannot read a frame");
    });
  }

  it("waits for a frame of the largest size", () => {
    const bytes = new Uint8Array(16);
    new DataView(bytes.buffer).setUint32(0, 256 * 1024 * 1024 - 4, true);
    assertEquals(read(bytes), { frames: [], count: 0 });
  });

  it("reads a view into a larger buffer", () => {
    const bytes = join(new Uint8Array(3), frame(4, 1, 2), new Uint8Array(5));
    assertEquals(read(bytes.subarray(3, 19)).frames, [[4, 1, 2, []]]);
  });
});

describe("readStrings()", () => {
  it("distinguishes NULL and the empty string", () => {
    assertEquals(readStrings(strings("é😀", undefined, "", "x"), 4), ["é😀", undefined, "", "x"]);
  });

  it("retains a byte order mark and a NUL", () => {
    assertEquals(readStrings(strings("\u{feff}{}", "a\0b"), 2), ["\u{feff}{}", "a\0b"]);
  });

  it("rejects a block that is truncated, too short for its strings, or too long", () => {
    const block = strings("abc", "d");
    for (
      const [bytes, why] of [
        [block.subarray(0, 7), "they are cut off"],
        [block.subarray(0, block.length - 1), "a string is longer than its frame"],
        [join(block, new Uint8Array(1)), "bytes are left over"],
      ] as const
    ) {
      assertThrows(() => readStrings(bytes, 2), FrameError, why);
    }
  });
});

const encoder = new TextEncoder();

function written(writer: FrameWriter): Uint8Array | undefined {
  let bytes: Uint8Array | undefined;
  writer.flush((frames) => bytes = frames.slice());
  return bytes;
}

describe("FrameWriter", () => {
  it("writes frames one after the other, byte for byte", () => {
    const writer = new FrameWriter();
    writer.add(REPLY.metadata, 0, 7, '{"é":1}');
    writer.add(REPLY.hello, 1, 2 ** 40 + 3, "");
    assertEquals(
      written(writer),
      join(
        frame(REPLY.metadata, 0, 7, encoder.encode('{"é":1}')),
        frame(REPLY.hello, 1, 2 ** 40 + 3),
      ),
    );
  });

  it("writes a length, a text and another text", () => {
    const writer = new FrameWriter();
    writer.addPair(REPLY.result, 1, 4, "böse", '{"a":1}');
    const [reply] = readReplies(written(writer) ?? new Uint8Array(0));
    assertEquals([reply?.message, reply?.value], ["böse", { a: 1 }]);
  });

  it("is empty after a flush", () => {
    const writer = new FrameWriter();
    writer.add(REPLY.pong, 0, 1, "");
    assertEquals(writer.size, 16);
    assertEquals(written(writer)?.length, 16);
    assertEquals(writer.size, 0);
    assertEquals(written(writer), undefined);
  });

  for (const length of [16 * 1024, 16 * 1024 + 1, 3_000_000]) {
    it(`writes a text of ${length} characters that take three bytes each`, () => {
      const writer = new FrameWriter();
      const text = JSON.stringify("€".repeat(length));
      writer.add(REPLY.pong, 0, 1, "");
      assertEquals(writer.add(REPLY.metadata, 0, 2, text), true);
      const replies = readReplies(written(writer) ?? new Uint8Array(0));
      assertEquals(replies.map(({ id, value }) => [id, String(value).length]), [[1, 0], [
        2,
        length,
      ]]);
    });
  }

  it("drops a frame that would be too large, but no other", () => {
    const writer = new FrameWriter(65_536);
    const text = "x".repeat(65_536 - 15);
    writer.add(REPLY.pong, 0, 1, "");
    assertEquals(writer.add(REPLY.metadata, 0, 2, text), false);
    assertEquals(writer.addPair(REPLY.result, 1, 3, "why", text), false);
    writer.add(REPLY.pong, 0, 4, "");
    const replies = readReplies(written(writer) ?? new Uint8Array(0));
    assertEquals(replies.map(({ id }) => id), [1, 4]);
  });
});

describe("FrameStream", () => {
  const frames = [3, 0, 200, 70_000, 1].map((size, id) =>
    frame(1, 0, id, new Uint8Array(size).fill(id + 1))
  );
  const all = join(...frames);

  for (const piece of [1, 7, 16, 17, 4096, all.length]) {
    it(`joins frames that arrive ${piece} bytes at a time`, () => {
      const seen: [number, number, number][] = [];
      const stream = new FrameStream((bytes) =>
        readFrames(bytes, ({ id, payload }) => seen.push([id, payload.length, payload.at(-1) ?? 0]))
      );
      for (let at = 0; at < all.length; at += piece) stream.push(all.slice(at, at + piece));
      assertEquals(seen, [[0, 3, 1], [1, 0, 0], [2, 200, 3], [3, 70_000, 4], [4, 1, 5]]);
      assertEquals(stream.waiting, 0);
    });
  }

  it("copies the bytes that it stores", () => {
    const ids: number[] = [];
    const stream = new FrameStream((bytes) => readFrames(bytes, ({ id }) => void ids.push(id)));
    const lent = frame(1, 0, 42);
    const first = lent.slice(0, 10);
    stream.push(first);
    first.fill(0xff);
    stream.push(lent.slice(10));
    assertEquals(ids, [42]);
  });
});
