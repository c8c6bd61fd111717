import { Buffer } from "node:buffer";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { MAX_READ_BYTES } from "./file_read.ts";
import { testWorkspace } from "../testing.ts";

interface Read {
  readonly path: string;
  readonly content: string;
  readonly encoding: string;
  readonly size: number;
  readonly unit: string;
  readonly offset: number;
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
      unit: "lines",
      offset: 0,
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
    ] as const
  ) {
    it(`reads ${what}`, async () => {
      await using test = await testWorkspace({ "f": text });
      const read = await test.ok<Read>("file-read", { path: "f", ...args });
      assertEquals([read.content, read.count, read.next], [content, count, next]);
    });
  }

  it("goes through a large file with next, and loses nothing", async () => {
    const text = Array.from({ length: 40_000 }, (_, index) => `line ${index} äöü\n`).join("");
    await using test = await testWorkspace({ "f": text });
    for (const unit of ["lines", "bytes"]) {
      let found = "";
      let calls = 0;
      for (let offset: number | null = 0; offset !== null; calls++) {
        const read: Read = await test.ok<Read>("file-read", { path: "f", unit, offset });
        assertEquals(Buffer.byteLength(read.content) <= MAX_READ_BYTES, true);
        found += read.content;
        offset = read.next;
      }
      assertEquals(found === text, true);
      assertEquals(calls, Math.ceil(Buffer.byteLength(text) / MAX_READ_BYTES));
    }
  });

  it("reads bytes without tearing characters apart, and says where it begins", async () => {
    await using test = await testWorkspace({ "f": "aä😀b" });
    const read = (offset: number, limit: number) =>
      test.ok<Read>("file-read", { path: "f", unit: "bytes", offset, limit });
    // a=1 ä=2 😀=4 b=1
    assertEquals(await read(0, 2).then((part) => [part.content, part.next]), ["a", 1]);
    assertEquals(await read(1, 5).then((part) => [part.content, part.next]), ["ä", 3]);
    assertEquals(await read(2, 6).then((part) => [part.content, part.offset]), ["😀b", 3]);
    assertEquals(await read(3, 99).then((part) => [part.content, part.next]), ["😀b", null]);
  });

  it("reads binary files as base64, and says so when they are asked for as text", async () => {
    const data = new Uint8Array([0, 1, 2, 250, 251, 252]);
    await using test = await testWorkspace({ "f.bin": data, "latin1": new Uint8Array([0xe4]) });
    for (const path of ["f.bin", "latin1"]) {
      for (const unit of ["lines", "bytes"]) {
        const error = await test.fails("file-read", { path, unit });
        assertEquals(error.code, "invalid_arguments");
        assertStringIncludes(error.message, 'it is binary; ask for encoding "base64"');
      }
    }
    const read = await test.ok<Read>("file-read", {
      path: "f.bin",
      encoding: "base64",
      offset: 1,
      limit: 4,
    });
    assertEquals([...Buffer.from(read.content, "base64")], [1, 2, 250, 251]);
    assertEquals([read.unit, read.count, read.next], ["bytes", 4, 5]);
  });

  it("says what to do about a line that is too long", async () => {
    await using test = await testWorkspace({ "f": `short\n${"x".repeat(MAX_READ_BYTES + 1)}\n` });
    const first = await test.ok<Read>("file-read", { path: "f" });
    assertEquals([first.content, first.next], ["short\n", 1]);
    const error = await test.fails("file-read", { path: "f", offset: 1 });
    assertStringIncludes(
      error.message,
      'line 2 is longer than 262144 bytes; read it with unit "bytes"',
    );
  });

  it("keeps a byte order mark and a line separator as they are", async () => {
    await using test = await testWorkspace({ "f": "\ufeffa\u2028b\n" });
    assertEquals((await test.ok<Read>("file-read", { path: "f" })).content, "\ufeffa\u2028b\n");
  });

  for (
    const [what, args, code, message] of [
      ["a file that is not there", { path: "nope" }, "invalid_arguments", "it does not exist"],
      ["a folder", { path: "src" }, "invalid_arguments", "it is a folder"],
      ["a path outside", { path: "../x" }, "denied", 'it contains ".."'],
      ["an absolute path outside", { path: "/etc/passwd" }, "denied", "outside the workspace"],
      ["a link that leads outside", { path: "out" }, "denied", "leads outside the workspace"],
      ["git's configuration", { path: ".git/config" }, "denied", "not for the file tools"],
      ["git's configuration by a link", { path: "dot/config" }, "denied", "not for the file tools"],
      ["no path", {}, "invalid_arguments", "path"],
      ["a negative offset", { path: "src/a", offset: -1 }, "invalid_arguments", "offset"],
      ["a limit of 0", { path: "src/a", limit: 0 }, "invalid_arguments", "limit"],
      ["an unknown encoding", { path: "src/a", encoding: "utf7" }, "invalid_arguments", "encoding"],
      ["an unknown argument", { path: "src/a", lines: 3 }, "invalid_arguments", "lines"],
    ] as const
  ) {
    it(`refuses ${what}`, async () => {
      await using test = await testWorkspace({ "src/a": "a", ".git/config": "secret" });
      await symlink("/etc/passwd", join(test.folder.path, "out"));
      await symlink(".git", join(test.folder.path, "dot"));
      const error = await test.fails("file-read", args);
      assertEquals(error.code, code);
      assertStringIncludes(error.message, message);
      assertEquals(JSON.stringify(error).includes(test.folder.path), false);
    });
  }
});
