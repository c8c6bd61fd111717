import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { readFrames, readStrings, readText } from "../../../src/adapters/native/frame_reader.ts";
import { ProtocolError } from "../../../src/adapters/native/protocol.ts";
import { frame, join, strings } from "./fakes.ts";

function read(bytes: Uint8Array) {
  const frames: unknown[] = [];
  const count = readFrames(bytes, ({ type, flags, id, payload }) => {
    frames.push([type, flags, id, [...payload]]);
  });
  return { frames, count };
}

describe("readFrames()", () => {
  it("reads type, flags, id and payload of each frame in a row", () => {
    const bytes = join(frame(1, 1, 7, new Uint8Array([1, 2])), frame(3, 0, 0));
    assertEquals(read(bytes), { frames: [[1, 1, 7, [1, 2]], [3, 0, 0, []]], count: bytes.length });
  });

  it("reads ids of more than 32 bits", () => {
    const id = 2 ** 32 * 5 + 4_000_000_000;
    assertEquals(read(frame(1, 0, id)).frames, [[1, 0, id, []]]);
  });

  it("leaves the beginning of a frame, wherever it is cut", () => {
    const whole = frame(2, 0, 1, new Uint8Array([9]));
    const bytes = join(whole, whole);
    for (let cut = 0; cut < whole.length; cut++) {
      assertEquals(read(bytes.subarray(0, whole.length + cut)).count, whole.length);
    }
  });

  for (const size of [0, 11, 256 * 1024 * 1024 - 3, 0xffff_ffff]) {
    it(`refuses a frame whose length is ${size}`, () => {
      const bytes = new Uint8Array(16);
      new DataView(bytes.buffer).setUint32(0, size, true);
      assertThrows(() => read(bytes), ProtocolError, "Cannot read a frame");
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
  it("tells NULL and the empty string apart", () => {
    assertEquals(readStrings(strings("é😀", undefined, "", "x"), 4), ["é😀", undefined, "", "x"]);
  });

  it("keeps a byte order mark and a NUL", () => {
    assertEquals(readStrings(strings("\u{feff}{}", "a\0b"), 2), ["\u{feff}{}", "a\0b"]);
  });

  it("refuses a block that is cut off, too short for its strings, or too long", () => {
    const block = strings("abc", "d");
    for (
      const [bytes, why] of [
        [block.subarray(0, 7), "they are cut off"],
        [block.subarray(0, block.length - 1), "one is longer than its frame"],
        [join(block, new Uint8Array(1)), "something follows"],
      ] as const
    ) {
      assertThrows(() => readStrings(bytes, 2), ProtocolError, why);
    }
  });
});

describe("readText()", () => {
  it("reads UTF-8", () => {
    assertEquals(readText(new TextEncoder().encode("käse 🧀")), "käse 🧀");
  });
});
