/** The inspector of MCP, as a program, against the endpoint on all four runtimes. */

import { afterAll, beforeAll, describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { NAMES } from "../../../scripts/lib/runtimes.mjs";
import { ROOT, type RunningServer, startServer } from "../servers.ts";

const PACKAGE = join(import.meta.dirname, "../node_modules/@modelcontextprotocol/inspector");

/** The inspector's exit code for a failed tool. */
const TOOL_FAILED = 5;

function programOf(folder: string): string {
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return join(folder, bin["mcp-inspector"]);
}

for (const runtime of NAMES) {
  describe(`the inspector on ${runtime}`, () => {
    let server: RunningServer;
    beforeAll(async () => {
      server = await startServer(runtime, join(ROOT, "test/support/conformance/worker.ts"));
    });
    afterAll(() => server.stop());

    function inspect(
      ...args: readonly string[]
    ): Promise<{ code: number; output: string }> {
      const all = [
        programOf(PACKAGE),
        "--cli",
        server.url.href,
        "--transport",
        "http",
        ...args,
      ];
      return new Promise((resolve) => {
        execFile(
          process.execPath,
          [...all, "--format", "json"],
          (error, stdout, stderr) =>
            resolve({
              code: Number(error?.code ?? 0),
              output: stdout + stderr,
            }),
        );
      });
    }

    it("finds nothing wrong with the schemas of the list, in either era", async () => {
      const list = ["--method", "tools/list", "--strict", "--protocol-era"];
      for (
        const { code, output } of await Promise.all([
          inspect(...list, "legacy"),
          inspect(...list, "modern"),
        ])
      ) {
        assertEquals(code, 0, output);
        assertStringIncludes(output, '"test_simple_text"');
      }
    });

    it("calls tools, and reports failures", async () => {
      const call = ["--method", "tools/call", "--tool-name"];
      const [text, failure] = await Promise.all([
        inspect(...call, "test_simple_text"),
        inspect(...call, "test_error_handling"),
      ]);
      assertEquals(text.code, 0, text.output);
      assertStringIncludes(text.output, "This is a simple text response for testing.");
      assertEquals(failure.code, TOOL_FAILED, failure.output);
    });
  });
}
