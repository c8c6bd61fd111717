import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe } from "bun:test";
import { freePort } from "../../support/free_port.ts";
import { maybe } from "../../support/skip.ts";
import { temporaryFolder } from "../workspace/testing.ts";
import { type Program, projectFolder, startProgram } from "../../support/program.ts";

const has = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;

/** Sends requests until the server listens. Fails if the program has ended. */
async function reach(program: Program, url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    if (answer?.status === 200) return;
    if (program.child.exitCode !== null) throw new Error(JSON.stringify(program.output));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const TOKEN = "correct-horse-battery";

/** Sends requests to all routes of an entry, with and without the token. */
async function answers(program: Program, url: string): Promise<void> {
  await reach(program, url);
  const ask = (path: string, body: unknown, headers: Record<string, string>) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(path === "/mcp" ? { accept: "application/json, text/event-stream" } : {}),
        ...headers,
      },
      body: JSON.stringify(body),
    });
  const known = { authorization: `Bearer ${TOKEN}` };
  const digest = { text: "abc" };
  for (
    const [path, body] of [
      ["/tools/text:digest/execute", { arguments: digest }],
      ["/mcp", {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "text.digest", arguments: digest },
      }],
      ["/dispatch/anthropic", {
        role: "assistant",
        content: [{ type: "tool_use", id: "t1", name: "text__digest", input: digest }],
      }],
    ] as const
  ) {
    const refused = await ask(path, body, {});
    assertEquals(refused.status, 401);
    await refused.body?.cancel();
    assertStringIncludes(await (await ask(path, body, known)).text(), "ba7816bf");
  }
  const described = await (await fetch(`${url}/openapi.json`, { headers: known })).json();
  assertStringIncludes(described.openapi, "3.1.");
  // The access log has a line for each request, which may be printed after the response.
  await program.printed(/"path":"\/openapi\.json".*"principal":"edge"/);
}

describe("the edge entries", () => {
  maybe(has("workerd"), "workerd is not installed")("answer in workerd", async () => {
    await using folder = await temporaryFolder();
    const built = await Bun.build({
      entrypoints: [join(projectFolder, "examples/edge/worker.ts")],
      outdir: join(folder.path, "dist"),
      target: "browser",
      conditions: ["workerd", "worker"],
      external: ["cloudflare:workers"],
      minify: true,
    });
    assertEquals(built.success, true);
    const port = await freePort();
    const config = await readFile(join(projectFolder, "examples/edge/workerd.capnp"), "utf8");
    await writeFile(
      join(folder.path, "workerd.capnp"),
      config.replace(":8787", `:${port}`).replace('"examples/edge/dist"', `"${folder.path}/dist"`),
    );
    await using program = startProgram(
      "workerd",
      ["serve", join(folder.path, "workerd.capnp")],
      { PLUE_TOKEN: TOKEN },
    );
    await answers(program, `http://127.0.0.1:${port}`);
  });

  maybe(has("deno"), "Deno is not installed")("answer in Deno", async () => {
    const port = await freePort();
    await using program = startProgram("deno", [
      ...["serve", "--no-prompt", "--node-modules-dir=manual", "--allow-env=PLUE_TOKEN"],
      ...["--host", "127.0.0.1", "--port", String(port), "examples/edge/deno.ts"],
    ], { PLUE_TOKEN: TOKEN });
    await answers(program, `http://127.0.0.1:${port}`);
  });

  maybe(has("node"), "Node is not installed")("answer in Node", async () => {
    const port = await freePort();
    await using program = startProgram("node", ["examples/edge/node.ts"], {
      PLUE_TOKEN: TOKEN,
      PORT: String(port),
    });
    await answers(program, `http://127.0.0.1:${port}`);
  });

  maybe(true, "")("answer in Bun", async () => {
    const port = await freePort();
    await using program = startProgram(process.execPath, ["examples/edge/bun.ts"], {
      PLUE_TOKEN: TOKEN,
      PORT: String(port),
    });
    await answers(program, `http://127.0.0.1:${port}`);
  });
});
