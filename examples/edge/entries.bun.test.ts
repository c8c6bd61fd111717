import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { assert, assertEquals } from "@std/assert";
import { describe } from "bun:test";
import { maybe } from "../../test/support/skip.ts";
import { temporaryFolder } from "../workspace/testing.ts";
import { type Program, projectFolder, startProgram } from "../testing.ts";

const has = (command: string): boolean => spawnSync(command, ["--version"]).status === 0;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  await new Promise((resolve) => server.close(resolve));
  return address.port;
}

/** Asks until somebody listens; gives up when the program has ended. */
async function reach(program: Program, url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    if (answer?.status === 200) return;
    if (program.child.exitCode !== null) throw new Error(JSON.stringify(program.output));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function answers(program: Program, url: string): Promise<void> {
  await reach(program, url);
  const body = JSON.stringify({ arguments: { text: "abc" } });
  const ask = (headers: Record<string, string>) =>
    fetch(`${url}/tools/text:digest/execute`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
  assertEquals((await ask({})).status, 401);
  const answer = await (await ask({ authorization: "Bearer s3cret" })).json();
  assertEquals([answer.ok, String(answer.content).slice(0, 8)], [true, "ba7816bf"]);
}

describe("the edge entries", () => {
  maybe(has("workerd"), "workerd is not installed")("answer in workerd", async () => {
    await using folder = await temporaryFolder();
    const built = await Bun.build({
      entrypoints: [join(projectFolder, "examples/edge/worker.ts")],
      outdir: join(folder.path, "dist"),
      target: "browser",
      conditions: ["workerd", "worker"],
      minify: true,
    });
    assertEquals(built.success, true);
    const port = await freePort();
    const config = await readFile(join(projectFolder, "examples/edge/workerd.capnp"), "utf8");
    await writeFile(join(folder.path, "workerd.capnp"), config.replace(":8787", `:${port}`));
    await using program = startProgram(
      "workerd",
      ["serve", join(folder.path, "workerd.capnp")],
      { PLUE_TOKEN: "s3cret" },
    );
    await answers(program, `http://127.0.0.1:${port}`);
  });

  maybe(has("deno"), "Deno is not installed")("answer in Deno", async () => {
    const port = await freePort();
    await using program = startProgram("deno", [
      ...["serve", "--no-prompt", "--node-modules-dir=manual", "--allow-env=PLUE_TOKEN"],
      ...["--host", "127.0.0.1", "--port", String(port), "examples/edge/deno.ts"],
    ], { PLUE_TOKEN: "s3cret" });
    await answers(program, `http://127.0.0.1:${port}`);
  });

  maybe(true, "")("answer in Bun", async () => {
    const port = await freePort();
    await using program = startProgram(process.execPath, ["examples/edge/bun.ts"], {
      PLUE_TOKEN: "s3cret",
      PORT: String(port),
    });
    await answers(program, `http://127.0.0.1:${port}`);
  });
});
