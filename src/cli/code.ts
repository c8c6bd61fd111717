/** Programs that call the tools: `plue code` runs one, and the tools of `plue serve --code` do. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import {
  codeTool,
  type Executor,
  quickJs,
  stripTypes,
  toolsAsTypeScript,
} from "../adapters/code/mod.ts";
import { ToolBridge } from "../finding/bridge.ts";
import { buildToolset, type Toolset } from "../select/mod.ts";
import { cleanText, describeThrown } from "../tool/mod.ts";
import { type CallFlags, callOnTerminal, printContent } from "./call.ts";
import { toolsFrom } from "./show.ts";
import { CommandError, readInput, type Terminal, usageError } from "./terminal.ts";

interface CodeResult {
  readonly value: unknown;
  readonly log?: string;
  readonly failures?: readonly { readonly tool: string; readonly message: string }[];
}

/** @param file The path of the program, or `-` for standard input. */
export async function code(
  file: string | undefined,
  flags: CallFlags,
  terminal: Terminal,
): Promise<number | void> {
  await using loaded = await toolsFrom([], flags, terminal.io);
  const { toolset: tools } = loaded;
  if (flags["types"] === true) return terminal.printForeign(toolsAsTypeScript(tools).trimEnd());
  if (file === undefined) {
    throw usageError("Cannot run a program: name its file, or - for the input");
  }
  const program = await readProgram(file, terminal);
  const { timeout: timeoutMs = 60_000 } = flags;
  const toolset = codeTool(tools, {
    executor: await openQuickJs(),
    limits: { maxSourceLength: program.length + 1, timeoutMs },
  });
  const request = { name: "run_code", arguments: { code: program } };
  return await callOnTerminal(request, { ...loaded, toolset }, flags, terminal, (content) => {
    const { value, log, failures = [] } = content as CodeResult;
    if (log !== undefined) terminal.note(cleanText(log, Infinity));
    for (const { tool, message } of failures) terminal.warn(`${tool} failed: ${message}`);
    printContent(value, terminal);
  });
}

/** Returns functions that list `run_code` and `search_tools`, `alone` or `beside` the tools. */
export async function codeMode(): Promise<
  Readonly<Record<"alone" | "beside", (toolset: Toolset) => Toolset>>
> {
  const options = { executor: await openQuickJs() };
  const alone = (toolset: Toolset): Toolset => codeTool(toolset, options);
  const own = buildToolset(alone(buildToolset([])).tools);
  const beside = (toolset: Toolset): Toolset =>
    new ToolBridge(toolset, own, { pinned: toolset.ids, native: false });
  return { alone, beside };
}

async function readProgram(file: string, { io }: Terminal): Promise<string> {
  const source = await readInput(file, io).catch((cause) => {
    throw usageError(`Cannot read the program "${file}": ${describeThrown(cause)}`, { cause });
  });
  return /\.[cm]?ts$/.test(file) ? stripTypes(source) : source;
}

let opened: Executor | undefined;

/** Creates the executor once: it compiles the module, and a gateway has many services. */
async function openQuickJs(): Promise<Executor> {
  try {
    const file = createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm");
    return opened ??= quickJs(await readFile(file));
  } catch (cause) {
    const message =
      "Cannot run programs: the package quickjs-wasi is missing; install it next to plue";
    throw new CommandError(message, undefined, { cause });
  }
}
