/** `plue doctor` and `plue native`: call through each installed part, and print libplue's flags. */

import process from "node:process";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { callThroughLibplue } from "../adapters/native/guest_runtimes.ts";
import { findLibplue, findOrCompileLibplue } from "../adapters/native/find_libplue.ts";
import { ToolDispatcher, ToolRegistry } from "../adapters/typebox/mod.ts";
import { describeThrown, type ToolDefinition } from "../tool/mod.ts";
import * as cli from "./terminal.ts";
import { type Diagnosis, EXIT } from "./terminal.ts";

const run = promisify(execFile);

const CHECK_MS = 30_000;

/** The runtimes, the options with which each runs a script, and the oldest supported version. */
const RUNTIMES: readonly (readonly [name: string, args: readonly string[], oldest: string])[] = [
  ["node", [], "20.19"],
  ["bun", [], "1.2"],
  ["deno", ["run", "--allow-all", "--node-modules-dir=manual", "--no-config"], "2.0"],
];

const ECHO: ToolDefinition = {
  name: "echo",
  description: "Answers what it is given.",
  risk: "safe",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  execute: (params: unknown) => params,
};
const PARAMS = '{"text":"hello"}';

/**
 * @param flags With `nats` or `store`, only these are checked.
 * @returns The exit code: 1 if something that is installed does not work.
 */
export async function doctor(
  flags: { readonly nats?: string; readonly store?: string },
  terminal: cli.Terminal,
): Promise<number> {
  const { signal, env } = terminal.io;
  const nats = flags.nats ?? env["PLUE_NATS"]
    ? await (await import("./nats_admin.ts")).diagnoseNats(env, flags.nats, signal)
    : [];
  const { diagnoseStore, storeAddress } = await import("./store.ts");
  const store = storeAddress(terminal.io, flags.store);
  const found: readonly Diagnosis[] = [
    cli.works("plue", `${cli.VERSION} on ${runtimeName()}`),
    ...(flags.nats ?? flags.store) === undefined ? await checkHere(signal) : [],
    ...nats,
    ...store === undefined ? [] : await diagnoseStore(store),
  ];
  terminal.printResult(found, () =>
    terminal.table(
      ["PART", "STATE", "DETAIL"],
      found.map(({ part, state, detail }) => [part, state, detail]),
      { STATE: { works: "green", missing: "yellow", broken: "red" } },
    ));
  return found.some(({ state }) => state === "broken") ? EXIT.failed : EXIT.ok;
}

/**
 * Makes a call in a process that the doctor starts, and prints its result.
 *
 * @param library The libplue to call through; by default, only this runtime is used.
 */
export async function probe(library: string | undefined, terminal: cli.Terminal): Promise<number> {
  if (library !== undefined) {
    const answer = await callThroughLibplue(library, ECHO.name, PARAMS);
    terminal.print(answer ?? "");
    return answer === undefined ? EXIT.failed : EXIT.ok;
  }
  const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [ECHO] }));
  const result = await dispatcher.dispatch({ name: ECHO.name, arguments: PARAMS });
  terminal.print(result.ok ? JSON.stringify(result.content) : result.error.message);
  return result.ok ? EXIT.ok : EXIT.failed;
}

async function checkHere(signal: AbortSignal): Promise<readonly Diagnosis[]> {
  const runtimes = await Promise.all(RUNTIMES.map((runtime) => checkRuntime(...runtime, signal)));
  const host = RUNTIMES.find(([name], at) => name !== "node" && runtimes[at]?.state === "works");
  return [...runtimes, ...await checkLibrary(host, signal)];
}

function runtimeName(): string {
  const { bun, deno, node } = process.versions as Readonly<Record<string, string | undefined>>;
  return bun !== undefined ? `Bun ${bun}` : deno !== undefined ? `Deno ${deno}` : `Node ${node}`;
}

/** A file of the app, whose packages are found from its folder. */
const APP = join(process.cwd(), "package.json");
/** The path of this program: the bundle, or its source. */
const PROGRAM = process.argv[1] ?? "";

async function checkRuntime(
  part: string,
  args: readonly string[],
  oldest: string,
  signal: AbortSignal,
): Promise<Diagnosis> {
  let version: string;
  try {
    const { stdout } = await run(part, ["--version"], { signal, timeout: CHECK_MS });
    version = /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? "?";
  } catch {
    return cli.missing(part, "not on the PATH");
  }
  if (version.localeCompare(oldest, "en", { numeric: true }) < 0) {
    return cli.broken(part, `${version} is older than ${oldest}`);
  }
  return await tried(part, `${version}, a call works`, part, [...args, PROGRAM, "probe"], signal);
}

async function checkLibrary(
  host: (typeof RUNTIMES)[number] | undefined,
  signal: AbortSignal,
): Promise<readonly Diagnosis[]> {
  let found: ReturnType<typeof findLibplue>;
  try {
    found = findLibplue({ from: APP });
  } catch (error) {
    return [cli.missing("libplue", describeThrown(error))];
  }
  const { library, sidecar } = found;
  const without = sidecar === undefined
    ? 'run "npm run build:native", or build one with your tools (ffi/README.md)'
    : host === undefined
    ? `${sidecar} was found, but only Bun or Deno can try it`
    : undefined;
  const row = without !== undefined || host === undefined
    ? cli.missing("sidecar", without ?? "")
    : await tryLibrary(library, `${sidecar}, a call through libplue works`, host, signal);
  return [cli.works("libplue", library), row];
}

/** Calls a tool through libplue, in a module that imports the package of this program. */
async function tryLibrary(
  library: string,
  detail: string,
  [command, args]: (typeof RUNTIMES)[number],
  signal: AbortSignal,
): Promise<Diagnosis> {
  const folder = await mkdtemp(join(tmpdir(), "plue-doctor-"));
  const tools = join(folder, "tools.mjs");
  const own = import.meta.url;
  const entry = own.endsWith(".ts")
    ? new URL("../../mod.ts", own).href
    : import.meta.resolve("@plue/tools");
  const { execute: _execute, ...data } = ECHO;
  const text = `import { ToolRegistry } from ${JSON.stringify(entry)};
    const tool = { ...${JSON.stringify(data)}, execute: (params) => params };
    export const registry = new ToolRegistry({ tools: [tool] });`;
  try {
    await writeFile(tools, text);
    const words = [...args, PROGRAM, "probe", library];
    return await tried("sidecar", detail, command, words, signal, { PLUE_TOOLS: tools });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function tried(
  part: string,
  detail: string,
  command: string,
  args: readonly string[],
  signal: AbortSignal,
  env: Readonly<Record<string, string>> = {},
): Promise<Diagnosis> {
  try {
    const { stdout } = await run(command, [...args], {
      signal,
      timeout: CHECK_MS,
      env: { ...process.env, ...env },
    });
    return stdout.trim() === PARAMS
      ? cli.works(part, detail)
      : cli.broken(part, `a call answered ${stdout.trim().slice(0, 200)}`);
  } catch (error) {
    signal.throwIfAborted();
    const { stderr = "" } = error as { readonly stderr?: string };
    const [line = ""] = stderr.trim().split("\n").slice(-1);
    return cli.broken(part, line || describeThrown(error));
  }
}

/** Prints the flags for a compiler, or the place of libplue. Compiles it if npm has none. */
export function native(
  { cflags = false, libs = false, static: isStatic = false }: {
    readonly [Flag in "cflags" | "libs" | "static"]?: boolean;
  },
  terminal: cli.Terminal,
): void {
  const found = findOrCompileLibplue(APP, (line) => terminal.note(line));
  const words = [
    ...cflags ? found.cflags : [],
    ...libs ? (isStatic ? found.staticLibs : found.libs) : [],
  ];
  const files = [found.library, found.archive, found.sidecar].filter((path) => path !== undefined);
  terminal.printResult(found, () => cflags || libs ? words.join(" ") : files.join("\n"));
}
