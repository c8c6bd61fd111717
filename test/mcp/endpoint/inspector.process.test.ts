/**
 * The inspector of MCP, as a program, against the endpoint. Runs on one runtime only, because its
 * start takes seconds, and the transcripts compare the content of responses on all four.
 */

import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { ROOT, serverOn } from "../servers.ts";

const PACKAGE = join(import.meta.dirname, "../node_modules/@modelcontextprotocol/inspector");
const { bin } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
const PROGRAM = join(PACKAGE, bin["mcp-inspector"]);

/** The inspector's exit code for a failed tool. */
const TOOL_FAILED = 5;

describe("the inspector", () => {
  const server = serverOn("bun", join(ROOT, "test/support/conformance/worker.ts"));

  function inspect(...words: readonly string[]): Promise<{ code: number; output: string }> {
    const to = ["--cli", server.url.href, "--transport", "http", "--format", "json"];
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [PROGRAM, ...to, ...words],
        (error, stdout, stderr) =>
          resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
      );
    });
  }

  it("finds no error in the schemas of the list, in either era", async () => {
    for (const era of ["legacy", "modern"]) {
      const words = ["--method", "tools/list", "--strict", "--protocol-era", era];
      const { code, output } = await inspect(...words);
      assertEquals(code, 0, output);
      assertStringIncludes(output, '"test_simple_text"');
    }
  });

  it("calls tools, and reports failures", async () => {
    const call = ["--method", "tools/call", "--tool-name"];
    const text = await inspect(...call, "test_simple_text");
    assertEquals(text.code, 0, text.output);
    assertStringIncludes(text.output, "This is a simple text response for testing.");
    const failure = await inspect(...call, "test_error_handling");
    assertEquals(failure.code, TOOL_FAILED, failure.output);
  });
});
