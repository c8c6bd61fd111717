import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { FrameWriter } from "../../../src/adapters/native/frame_writer.ts";
import { REPLY } from "../../../src/adapters/native/protocol.ts";
import { frame, join, readReplies } from "./fakes.ts";

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

  it("begins anew after a flush, and has nothing to flush then", () => {
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

  it("leaves out a frame that would be too large, and keeps the others", () => {
    const writer = new FrameWriter();
    const text = "x".repeat(256 * 1024 * 1024 - 15);
    writer.add(REPLY.pong, 0, 1, "");
    assertEquals(writer.add(REPLY.metadata, 0, 2, text), false);
    assertEquals(writer.addPair(REPLY.result, 1, 3, "why", text), false);
    writer.add(REPLY.pong, 0, 4, "");
    const replies = readReplies(written(writer) ?? new Uint8Array(0));
    assertEquals(replies.map(({ id }) => id), [1, 4]);
  });
});
