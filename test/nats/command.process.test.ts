// `plue serve --nats` as programs on the runtime of the test, and `plue doctor --nats`.

import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { ToolRegistry } from "@plue/tools";
import { serveTools } from "@plue/tools/nats";
import { type Program, RUN, startProgram } from "../support/program.ts";
import { folder, plue, type Ran } from "../cli/support.ts";
import { missing, TestServer, withServer } from "./server.ts";

const SECRET = "a-secret-of-the-tests";
const files = folder();
const ROOT = join(import.meta.dirname, "../..");
const PLUE = [...RUN, "src/cli/main.ts"];

/** Deno does not pass its flags to the process that reloads: it would download all packages. */
const WATCH = "Deno" in globalThis ? ["--no-watch"] : [];

/** A module with one tool, which returns a version. */
const tools = (version: number): string =>
  `export const version = {
    name: "version", description: "Says its version.", risk: "low", 
    execute: () => ${version},
  };
  export const wipe = { name: "wipe", description: "Deletes all.", risk: "high", execute() {} };`;

/** Starts `plue serve`, and waits until it serves. */
async function serve(
  server: TestServer,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
) {
  const program = startProgram(process.execPath, [
    ...[...PLUE, "serve", "--port", "0", "--nats", server.url],
    ...args,
  ], { PLUE_NATS_SECRET: SECRET, ...env });
  const [, url = ""] = await program.printed(/ on (http:\S+)\n[^]*mcpServers/);
  return { program, url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

/** Calls a tool over HTTP. */
async function call(url: string, name: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/tools/${name}/execute`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"arguments":{}}',
  });
  return await response.json() as Record<string, unknown>;
}

async function stop({ child, ended }: Program): Promise<void> {
  // After its own `kill`, Deno reports the signal in place of the exit code.
  process.kill(child.pid ?? 0, "SIGTERM");
  assertEquals(await ended, { code: 0, signal: null });
}

type Rows = readonly { readonly part: string; readonly state: string; readonly detail: string }[];

const rowsOf = ({ stdout }: Ran): Rows => JSON.parse(stdout);
const statesOf = (ran: Ran): readonly string[] =>
  rowsOf(ran).map(({ part, state }) => `${part} ${state}`);

const SERVER_WORKS = ["plue works", "nats server works", "nats jetstream works"];

describe("plue --nats", () => {
  let server: TestServer;
  let guarded: TestServer;
  beforeAll(async () => {
    if (missing !== undefined) return;
    const users = '{ user: "ann lee", password: "p:w" }';
    [server, guarded] = await Promise.all([
      TestServer.start(),
      TestServer.start({ config: `jetstream: {}\nauthorization { users: [${users}] }` }),
    ]);
  });
  afterAll(async () => await Promise.all([server?.stop(), guarded?.stop()]));

  const doctor = (url: string, secret = SECRET): Promise<Ran> =>
    plue(["doctor", "--json", "--nats", url], { env: { PLUE_NATS_SECRET: secret } });

  withServer("serves a worker's tools on an edge, without a gap while they change", async () => {
    const before = await doctor(server.url);
    assertEquals(statesOf(before), [
      ...SERVER_WORKS,
      ...["nats clock missing", "nats workers missing"],
    ]);
    const file = await files.write("tools.mjs", tools(1));
    await using worker = await serve(server, {}, file, ...WATCH);
    assertStringIncludes(
      worker.program.output.stdout,
      `1 tool can also be called over ${server.url}.`,
    );
    await using edge = await serve(server, {}, "--no-watch", "--max-risk", "high");
    assertStringIncludes(
      edge.program.output.stdout,
      `The tools are those of 1 worker on ${server.url}.`,
    );
    assertEquals((await call(edge.url, "version"))["content"], 1);
    // A worker offers only the tools that it may serve over HTTP.
    assertEquals((await call(edge.url, "wipe"))["code"], "unknown_tool");
    const now = await doctor(server.url);
    assertEquals(now.code, 0);
    assertEquals(statesOf(now), [...SERVER_WORKS, "nats clock works", "nats workers works"]);
    assertEquals(rowsOf(now).at(-1)?.detail, "1 worker with 1 tool");
    const other = await doctor(server.url, "another-secret-of-16");
    assertEquals([other.code, statesOf(other).at(-1)], [1, "nats workers broken"]);
    assertStringIncludes(other.stdout, "do all processes have the same PLUE_NATS_SECRET, ");
    await files.write("tools.mjs", tools(2));
    await using next = WATCH.length > 0 ? await serve(server, {}, file, ...WATCH) : undefined;
    if (next !== undefined) await stop(worker.program);
    for (let answer: unknown = 1; answer !== 2;) {
      const { ok, content } = await call(edge.url, "version");
      assertEquals(ok, true);
      answer = content;
    }
    if (next === undefined) await worker.program.printed(/Loaded again/);
    await stop((next ?? worker).program);
    assertEquals((await call(edge.url, "version"))["ok"], undefined);
    await stop(edge.program);
  });

  withServer("serves and calls with keys, each process in its own role", async () => {
    await using own = await TestServer.start();
    const create = async () => JSON.parse((await plue(["nats", "keys", "--json"])).stdout);
    const [caller, worker] = [await create(), await create()];
    const lists = { PLUE_NATS_CALLERS: caller.publicKey, PLUE_NATS_WORKERS: worker.publicKey };
    const file = await files.write("keyed.mjs", tools(1));
    const start = ({ seed }: { readonly seed: string }, ...sources: readonly string[]) =>
      serve(own, { ...lists, PLUE_NATS_SEED: seed }, "--no-watch", ...sources);
    await using _worker = await start(worker, file);
    await using edge = await start(caller);
    assertEquals((await call(edge.url, "version"))["content"], 1);
    const env = { ...lists, PLUE_NATS_SECRET: SECRET, PLUE_NATS_SEED: caller.seed };
    const found = await plue(["doctor", "--json", "--nats", own.url], { env });
    assertEquals([found.code, rowsOf(found).at(-1)?.part], [0, "nats workers"]);
    const wrong = await plue(["serve", file, "--no-watch", "--port", "0", "--nats", own.url], {
      env,
    });
    assertEquals(wrong.code, 2);
    assertStringIncludes(wrong.stderr, "keys.workers must have the public key of keys.seed");
  });

  withServer("names the tools whose definitions are too large for the server", async () => {
    await using own = await TestServer.start({ lines: "max_payload: 65536" });
    const tool = { name: "ping", description: "Answers.", execute() {} };
    const big = { ...tool, name: "big", description: "x".repeat(70_000) };
    const registry = new ToolRegistry({ tools: [tool, big] });
    await using _served = await serveTools(registry, await own.connect(), { secret: SECRET });
    const ran = await doctor(own.url);
    assertEquals([ran.code, statesOf(ran).at(-1)], [1, "nats workers broken"]);
    assertMatch(rowsOf(ran).at(-1)?.detail ?? "", /^1 worker with 1 tool; max_payload is .*: big$/);
  });

  withServer("reports that a user works, without its name", async () => {
    const ran = await doctor(`nats://ann%20lee:p%3Aw@127.0.0.1:${guarded.port}`);
    assertEquals(statesOf(ran).slice(0, 3), SERVER_WORKS);
    assertEquals(ran.stdout.includes("ann"), false);
  });

  withServer("creates streams and keys, and names an invalid flag", async () => {
    await using own = await TestServer.start();
    const made = await plue(["nats", "init", "--max-bytes", "1048576"], {
      env: { PLUE_NATS: own.url },
    });
    assertEquals([made.code, made.stderr], [0, ""]);
    assertMatch(made.stdout, /^NAME +STATE +REPLICAS +BYTES\nplue_tools +created +1 +1048576\n/);
    const wrong = await plue(["nats", "init", "--replicas", "6", "--nats", own.url]);
    assertEquals(wrong.code, 2);
    assertMatch(wrong.stderr, /^Cannot create the streams: --replicas must be .* 1 .* 5/);
    const nowhere = await plue(["nats", "init"]);
    assertEquals(nowhere.stderr, "Cannot create the streams: set --nats or PLUE_NATS\n");
    const keys = await plue(["nats", "keys", "--json"]);
    assertMatch(keys.stdout, /^\{"seed":"SU\w{56}","publicKey":"U\w{55}"\}\n$/);
  });

  const run = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    plue([...words, "--no-watch", "--port", "0"], { env: { PLUE_NATS_SECRET: SECRET, ...env } });

  withServer("rejects invalid settings, and shows no secret", async () => {
    const rows: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
      [{ PLUE_NATS: "http://sesame@host" }, "PLUE_NATS must be nats://host:4222"],
      [{ PLUE_NATS: "nats://:sesame@host" }, "PLUE_NATS must be nats://host:4222"],
      [{ PLUE_NATS: "nats://a%:sesame@host" }, "PLUE_NATS must be nats://host:4222"],
      [{ PLUE_NATS: "nats://a:sesame@one,nats://b:sesame@two" }, "same user for all servers"],
      [{ PLUE_NATS: "nats://a:sesame@one", PLUE_NATS_CREDS: "x.creds" }, "leave one of them out"],
      [{ PLUE_NATS: "nats://one", PLUE_NATS_CREDS: "no.creds" }, 'PLUE_NATS_CREDS is "no.creds"'],
      [
        { PLUE_NATS: "nats://one", PLUE_NATS_CREDS: join(ROOT, "package.json") },
        "it does not contain the seed of a user",
      ],
      [{ PLUE_NATS: "nats://one", PLUE_NATS_SECRET: "sesame" }, "PLUE_NATS_SECRET must be 16"],
      [{ PLUE_NATS: server.url, PLUE_NATS_SECRET: "" }, "set PLUE_NATS_SECRET to a secret"],
      [{ PLUE_NATS: server.url, PLUE_NATS_SEED: "sesame" }, "PLUE_NATS_SEED must be the seed"],
      [{ PLUE_NATS: server.url, PLUE_NATS_CALLERS: "sesame" }, "PLUE_NATS_CALLERS must be public"],
      [{ PLUE_NATS: server.url, PLUE_NATS_WORKERS: `U${"A".repeat(55)}` }, "or none"],
    ];
    for (const [env, wanted] of rows) {
      const { code, stdout, stderr } = await run(["serve"], env);
      assertEquals([code, stdout], [2, ""]);
      assertMatch(stderr, /^Cannot serve[^\n]*\n$/);
      assertStringIncludes(stderr, wanted);
      assertEquals(stderr.includes("sesame"), false);
    }
  });
});
