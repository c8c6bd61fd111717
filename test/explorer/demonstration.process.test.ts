// Runs the demonstration of the README unchanged, except for its addresses.

import { assertEquals, assertMatch } from "@std/assert";
import { describe } from "bun:test";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { serve } from "../runtime/serve.ts";
import { freePort } from "../support/free_port.ts";
import { maybe } from "../support/skip.ts";
import { CHROMIUM, openPage, startBrowser } from "./browser.ts";

const ROOT = join(import.meta.dirname, "../..");
const [, SCRIPT = ""] =
  /^```sh ignore\n(cat > close\.js.*?)^```$/ms.exec(readFileSync(`${ROOT}/README.md`, "utf8")) ??
    [];

const hasTools = ["curl", "jq"].every((name) => spawnSync(name, ["--version"]).status === 0);
const test = maybe(CHROMIUM !== undefined && hasTools, "Chromium, curl or jq is not here");
const path = (name: string) => ({ name, in: "path", required: true, schema: { type: "string" } });
const number = { ...path("issue_number"), schema: { type: "integer" } };
const state = { type: "object", properties: { state: { enum: ["open", "closed"] } } };
const responses = { 200: { description: "The answer." } };

/** The part of GitHub's document that the program uses. */
const DOCUMENT = {
  openapi: "3.0.3",
  info: { title: "GitHub v3 REST API", version: "1.1.4" },
  servers: [{ url: "https://api.github.com" }],
  paths: {
    "/repos/{owner}/{repo}/issues": {
      get: {
        operationId: "issues/list-for-repo",
        summary: "List repository issues",
        parameters: [path("owner"), path("repo")],
        responses,
      },
    },
    "/repos/{owner}/{repo}/issues/{issue_number}": {
      patch: {
        operationId: "issues/update",
        summary: "Update an issue",
        parameters: [path("owner"), path("repo"), number],
        requestBody: { content: { "application/json": { schema: state } } },
        responses,
      },
    },
  },
};

/** A server in place of GitHub's, and its requests for the API. */
async function startGithub() {
  const requests: string[] = [];
  const { url, stop } = await serve(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/api.github.com.json") return Response.json(DOCUMENT);
    const body = await request.text();
    requests.push(`${request.method} ${pathname} ${request.headers.get("authorization")} ${body}`);
    const issue = { number: 7, title: "The page does not load" };
    return Response.json(request.method === "GET" ? [issue] : issue);
  });
  return { url, requests, [Symbol.asyncDispose]: stop };
}

/** A shell in a folder of its own, in which `plue` is the command of this repository. */
function startShell(port: string) {
  const folder = mkdtempSync(join(tmpdir(), "plue-demonstration-"));
  const command = `#!/bin/sh\nexec '${process.execPath}' '${ROOT}/src/cli/main.ts' "$@"\n`;
  writeFileSync(join(folder, "plue"), command, { mode: 0o755 });
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const shell = spawn("sh", {
    cwd: folder,
    env: {
      PATH: `${folder}:${PATH}`,
      HOME,
      NODE_COMPILE_CACHE,
      PORT: port,
      GITHUB_TOKEN: "sesame",
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  let look = (): void => {};
  shell.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    look();
  });
  const ended = new Promise((resolve) => shell.once("close", resolve));
  return {
    type: (text: string) => void shell.stdin.write(text),
    printed: (wanted: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve, reject) => {
        look = () => {
          const found = wanted.exec(output);
          if (found !== null) resolve(found);
        };
        void ended.then(() => reject(new Error(`It ended without ${wanted}: ${output}`)));
        look();
      }),
    async [Symbol.asyncDispose]() {
      shell.stdin.end("kill -9 $!\nexit\n");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

describe("the demonstration of the README", () => {
  test("stops at a rule, survives kill -9, and is finished by another process", async () => {
    await using github = await startGithub();
    const port = String(await freePort());
    await using shell = startShell(port);
    const [start, show] = SCRIPT
      .replace(/https:.*\/api\.github\.com\.json/, `${github.url}/api.github.com.json`)
      .replaceAll("https://api.github.com", github.url)
      .replaceAll("8787", port)
      .split(/^(?=plue journal)/m);
    shell.type(`${start}`);
    const [, link = ""] = await shell.printed(/^Approve on (.*)$/m);
    const [list, ...others] = github.requests;
    assertEquals(others, []);
    assertMatch(`${list}`, /^GET \/repos\/acme\/web\/issues Bearer sesame /);

    await using browser = await startBrowser();
    // The second server may still start.
    await shell.printed(/plue serves [^]*plue serves /);
    const { page } = await openPage(browser, link, { width: 390, height: 844 });
    await page.getByText('Run the tool "github:issues_update"?').waitFor();
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await page.getByText('"The page does not load" is closed').waitFor();
    assertEquals(github.requests.slice(1), [
      'PATCH /repos/acme/web/issues/7 Bearer sesame {"state":"closed"}',
    ]);

    // The journal is written before it is read.
    await (await fetch(`http://127.0.0.1:${port}/journal`)).text();
    shell.type(`${show}echo " end"\n`);
    const [, records = ""] = await shell.printed(/^(\[\n.*\n\])\n end$/ms);
    const calls = JSON.parse(records) as readonly Record<string, unknown>[];
    assertEquals(calls.map(({ tool, callId, outcome }) => [tool, callId, outcome]), [
      ["github:issues_list-for-repo", "close.0", "ok"],
      ["github:issues_update", "close.1", "input_required"],
      ["run_code", "close", "input_required"],
      ["github:issues_update", "close.1", "ok"],
      ["run_code", "close", "ok"],
    ]);
  });
});
