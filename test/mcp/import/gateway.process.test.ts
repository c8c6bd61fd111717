/** `plue serve -c` with servers of npm as sources, one of which dies and comes back. */

import { describe, it } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { RUN, startProgram } from "../../support/program.ts";

const SERVERS = join(import.meta.dirname, "../node_modules/@modelcontextprotocol");
const program = (name: string, ...args: readonly string[]) => ({
  command: "node",
  args: [join(SERVERS, name, "dist/index.js"), ...args],
  env: { PATH: "${PATH}" },
});

/** A server that writes the number of its process to a file, before it becomes another server. */
const numbered = (file: string, name: string, ...args: readonly string[]) => ({
  ...{ command: "sh", env: { PATH: "${PATH}" } },
  args: ["-c", `echo $$ > "${file}"; exec node "$@"`, "sh", ...program(name, ...args).args],
});

describe("plue serve -c", () => {
  it("serves servers of npm, and restarts a killed server", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "plue-gateway-")));
    writeFileSync(join(folder, "hello.txt"), "hello");
    const pid = join(folder, "pid");
    const file = join(folder, "plue.json");
    const sources = {
      files: { ...numbered(pid, "server-filesystem", folder), include: ["read_text_file"] },
      every: program("server-everything"),
      gone: { command: "false" },
    };
    writeFileSync(file, JSON.stringify({ sources }));
    await using served = startProgram(process.execPath, [
      ...[...RUN, "src/cli/main.ts", "serve", "-c", file, "--port", "0"],
    ]);
    const [, url = ""] = await served.printed(/clients connect to (\S+)\/mcp/);
    const call = async (tool: string, args: object): Promise<string> => {
      const response = await fetch(`${url}/tools/${tool}/execute`, {
        method: "POST",
        body: JSON.stringify({ arguments: args }),
        headers: { "content-type": "application/json" },
      });
      return await response.text();
    };
    const read = (): Promise<string> =>
      call("files:read_text_file", { path: `${folder}/hello.txt` });

    assertStringIncludes(await read(), '"hello"');
    assertMatch(await call("every:get-sum", { a: 2, b: 3 }), /sum of 2 and 3 is 5/);
    assertMatch(served.output.stdout, /gone +0 +Cannot import the MCP server "false": .* code 1/);

    const killed = Number(readFileSync(pid, "utf8"));
    process.kill(killed, "SIGKILL");
    // A call during the loss waits for the next program, or fails as unavailable.
    let text = await read();
    while (text.includes('"unavailable"')) text = await read();
    assertStringIncludes(text, '"hello"');
    assertEquals(Number(readFileSync(pid, "utf8")) === killed, false);

    // A change of one source leaves the programs of the others running.
    const again = readFileSync(pid, "utf8");
    writeFileSync(file, JSON.stringify({ sources: { files: sources.files } }));
    process.kill(served.child.pid ?? 0, "SIGHUP"); // Deno takes child.kill() for its end.
    await served.printed(/Applied .*: 1 source, 1 tool/);
    assertStringIncludes(await read(), '"hello"');
    assertEquals(readFileSync(pid, "utf8"), again);
    rmSync(folder, { recursive: true });
  });
});
