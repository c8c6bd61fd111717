import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readFrames } from "../../../src/adapters/native/frame_reader.ts";
import { FrameStream } from "../../../src/adapters/native/frame_stream.ts";
import { frame, join } from "./fakes.ts";

describe("FrameStream", () => {
  const frames = [3, 0, 200, 70_000, 1].map((size, id) =>
    frame(1, 0, id, new Uint8Array(size).fill(id + 1))
  );
  const all = join(...frames);

  for (const piece of [1, 7, 16, 17, 4096, all.length]) {
    it(`puts frames together that come ${piece} bytes at a time`, () => {
      const seen: [number, number, number][] = [];
      const stream = new FrameStream((bytes) =>
        readFrames(bytes, ({ id, payload }) => {
          seen.push([id, payload.length, payload.at(-1) ?? 0]);
        })
      );
      for (let at = 0; at < all.length; at += piece) stream.push(all.slice(at, at + piece));
      assertEquals(seen, [[0, 3, 1], [1, 0, 0], [2, 200, 3], [3, 70_000, 4], [4, 1, 5]]);
      assertEquals(stream.waiting, 0);
    });
  }

  it("copies what it keeps: the bytes are only lent", () => {
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
