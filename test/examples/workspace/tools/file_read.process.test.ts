import { Buffer } from "node:buffer";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { MAX_READ_BYTES, MAX_TEXT_BYTES } from "../../../../examples/workspace/tools/file_read.ts";
import { testWorkspace } from "../testing.ts";

interface Read {
  readonly path: string;
  readonly content: string;
  readonly encoding: string;
  readonly size: number;
  readonly count: number;
  readonly next: number | null;
}

describe("file-read", () => {
  it("reads a whole file by lines", async () => {
    await using test = await testWorkspace({ "src/a.txt": "one\ntwo\nthree" });
    assertEquals(await test.ok<Read>("file-read", { path: "./src/a.txt" }), {
      path: "src/a.txt",
      content: "one\ntwo\nthree",
      encoding: "utf8",
      size: 13,
      count: 3,
      next: null,
    });
  });

  for (
    const [what, text, args, content, count, next] of [
      ["the first line", "1\n2\n3\n", { limit: 1 }, "1\n", 1, 1],
      ["lines in the middle", "1\n2\n3\n", { offset: 1, limit: 1 }, "2\n", 1, 2],
      ["exactly all lines", "1\n2\n3\n", { limit: 3 }, "1\n2\n3\n", 3, null],
      ["up to a last line without a newline", "1\n2", { limit: 1 }, "1\n", 1, 1],
      ["a last line without a newline", "1\n2", { offset: 1 }, "2", 1, null],
      ["lines beyond the end", "1\n2\n", { offset: 9 }, "", 0, null],
      ["an empty file", "", {}, "", 0, null],
      ["empty lines", "\n\n\n", { offset: 1, limit: 1 }, "\n", 1, 2],
      ["CRLF as it is", "a\r\nb\r\n", { limit: 1 }, "a\r\n", 1, 1],
      ["a byte order mark", "\ufeffa\u2028b\n", {}, "\ufeffa\u2028b\n", 1, null],
    ] as const
  ) {
    it(`reads ${what}`, async () => {
      await using test = await testWorkspace({ "f": text });
      const read = await test.ok<Read>("file-read", { path: "f", ...args });
      assertEquals([read.content, read.count, read.next], [content, count, next]);
    });
  }

  it("returns a large file in parts, which next joins without a gap", async () => {
    const text = Array.from({ length: 40_000 }, (_, index) => `line ${index} äöü\n`).join("");
    await using test = await testWorkspace({ "f": text });
    for (const encoding of ["utf8", "base64"] as const) {
      const parts: Buffer[] = [];
      for (let offset: number | null = 0; offset !== null;) {
        const read: Read = await test.ok<Read>("file-read", { path: "f", encoding, offset });
        const part = Buffer.from(read.content, encoding);
        assertEquals(part.length <= MAX_READ_BYTES, true);
        parts.push(part);
        offset = read.next;
      }
      assertEquals(Buffer.concat(parts).toString() === text, true);
      assertEquals(parts.length, Math.ceil(Buffer.byteLength(text) / MAX_READ_BYTES));
    }
  });

  it("reads a large file as base64 only", async () => {
    await using test = await testWorkspace({ "f": "x\n".repeat(MAX_TEXT_BYTES / 2 + 1) });
    const error = await test.fails("file-read", { path: "f", limit: 1 });
    assertStringIncludes(error.message, 'larger than 8388608 bytes; use encoding "base64"');
    const last = { path: "f", encoding: "base64", offset: MAX_TEXT_BYTES };
    assertEquals((await test.ok<Read>("file-read", last)).content, "eAo=");
  });

  it("reads binary files as base64, and names that encoding when they are read as text", async () => {
    const data = new Uint8Array([0, 1, 2, 250, 251, 252]);
    await using test = await testWorkspace({ "f.bin": data, "latin1": new Uint8Array([0xe4]) });
    for (const path of ["f.bin", "latin1"]) {
      const error = await test.fails("file-read", { path });
      assertEquals(error.code, "invalid_arguments");
      assertStringIncludes(error.message, 'it is binary; use encoding "base64"');
    }
    const read = await test.ok<Read>("file-read", {
      path: "f.bin",
      encoding: "base64",
      offset: 1,
      limit: 4,
    });
    assertEquals([...Buffer.from(read.content, "base64")], [1, 2, 250, 251]);
    assertEquals([read.count, read.next], [4, 5]);
  });

  it("suggests base64 for a line that is too long", async () => {
    await using test = await testWorkspace({ "f": `short\n${"x".repeat(MAX_READ_BYTES + 1)}\n` });
    const first = await test.ok<Read>("file-read", { path: "f" });
    assertEquals([first.content, first.next], ["short\n", 1]);
    const error = await test.fails("file-read", { path: "f", offset: 1 });
    assertStringIncludes(
      error.message,
      'line 2 is longer than 262144 bytes; use encoding "base64"',
    );
  });
});
