/** Loads the module in a native host's configuration, which exports a registry. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { stripVTControlCharacters } from "node:util";
import type { CallTasks } from "../../execute/durable/mod.ts";
import * as calls from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import type { NativeTools } from "./host_tools.ts";

/** The exports of a module of tools. Only the registry is required. */
export interface ToolsModule {
  /** The tools. The module may also export the registry by default. */
  readonly registry: Registry;
  /** Begins the transactions of tools that require one. */
  readonly transactions?: calls.TransactionManager | undefined;
  /** Options for the dispatcher that runs the calls. */
  readonly dispatch?: calls.ToolDispatcherOptions | undefined;
  /** The tools that any host may have; its configuration can only narrow them. */
  readonly selection?: Selection | undefined;
  /** Stores tasks: `callTasks` of `@plue/tools/calls`. */
  readonly tasks?: CallTasks | undefined;
  /**
   * Makes the bridge of a host whose configuration has `"bridge": true`: `codeTool` of
   * `@plue/tools/code`, for example. By default `createToolBridge`. Only for tools that are compiled
   * into the sidecar.
   */
  readonly bridge?: ((toolset: Toolset) => Toolset) | undefined;
}

/**
 * Loads the tools of a sidecar.
 *
 * @param builtIn The tools that are compiled into the sidecar, if any.
 * @param name The module in the host's configuration, if any: a path from the current folder, or a
 * URL.
 */
export async function loadTools(
  builtIn: ToolsModule | undefined,
  name: string | undefined,
): Promise<NativeTools> {
  if (builtIn !== undefined) return toolsOf(builtIn);
  if (name !== undefined && name !== "") return await importTools(name);
  throw new TypeError(
    "Cannot start the tools: no module is set; set PLUE_TOOLS, or the option tools_module",
  );
}

function toolsOf(module: ToolsModule): NativeTools {
  const { registry, transactions, dispatch, selection, tasks, bridge } = module;
  const dispatcher = new calls.ToolDispatcher(registry, {
    ...(transactions === undefined ? {} : { transactions }),
    ...dispatch,
  });
  return { registry, dispatcher, selection, tasks, bridge };
}

async function importTools(name: string): Promise<NativeTools> {
  const module = await importToolsModule(name);
  const registry = registryIn(module);
  if (registry === undefined) {
    throw new TypeError(
      `Cannot use the tools of "${name}": it must export a ToolRegistry as "registry" or by default`,
    );
  }
  if (module["bridge"] !== undefined) {
    throw new TypeError(
      `Cannot use the export "bridge" of "${name}": pass the exports to runSidecar() in a sidecar of your own`,
    );
  }
  // The dispatcher and the registry check the other exports when they receive them.
  return toolsOf({ ...module, registry });
}

/** Imports a module by its URL, or by its path from the current folder. */
export async function importToolsModule(name: string): Promise<Readonly<Record<string, unknown>>> {
  const url = URL.canParse(name) ? name : pathToFileURL(resolve(name)).href;
  try {
    return await import(url);
  } catch (cause) {
    const isMissing = url.startsWith("file:") && !existsSync(fileURLToPath(url));
    const why = isMissing ? "there is no such file" : whyNotLoaded(cause);
    throw new Error(`Cannot load the tools of "${name}": ${why}`, { cause });
  }
}

const MAX_MISTAKES = 3;

/** The position of an error in a module, as runtimes report it. */
interface LoadError {
  /** Node: the kind of the error. */
  readonly code?: unknown;
  /** Bun: the errors of a module with several mistakes. */
  readonly errors?: readonly unknown[];
  /** Bun: the position of a single mistake. */
  readonly position?: { readonly file: string; readonly line: number; readonly column: number };
  /** Node: may begin with the path of the file and the number of the line. */
  readonly stack?: string;
}

/** Returns why a module cannot be loaded, with the file and the line if the runtime reports them. */
function whyNotLoaded(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { code, errors, position, stack } = error as LoadError;
  if (code === "ERR_UNKNOWN_FILE_EXTENSION") {
    return "this Node does not read TypeScript; use Node 22.18 or later, Bun or Deno, or compile it";
  }
  if (Array.isArray(errors) && errors.length > 0) {
    const more = errors.length > MAX_MISTAKES ? `; and ${errors.length - MAX_MISTAKES} more` : "";
    return errors.slice(0, MAX_MISTAKES).map(whyNotLoaded).join("; ") + more;
  }
  // Bun's errors are not instances of Error; Deno's messages are coloured.
  const { message: coloured = error } = error as { readonly message?: unknown };
  const message = stripVTControlCharacters(String(coloured));
  const place = position
    ? `${position.file}:${position.line}:${position.column}`
    : placeIn(stripVTControlCharacters(String(stack)));
  if (place !== undefined) return `${message} (${place})`;
  // Node prints the position of a syntax error in JavaScript only if the error ends the process.
  const isHidden = error instanceof SyntaxError && !/:\d+:\d+$/.test(message);
  return isHidden ? `${message}; "node --check" shows the line` : message;
}

/** Returns the file and the line of the first stack frame that belongs to the tools. */
function placeIn(stack: string): string | undefined {
  const [first = "", ...frames] = stack.split("\n");
  const mistake = /^(?:file:\/\/)?(\/.{1,4096}:\d+)$/.exec(first)?.[1];
  if (mistake !== undefined) return mistake;
  return frames
    .map((frame) =>
      /^ {4}at (?:.{0,300} \(|async )?(?:file:\/\/)?(\/.{1,4096}:\d+:\d+)\)?$/.exec(frame)?.[1]
    )
    .find((place) =>
      place !== undefined && !/\/node_modules\//.test(place) && !place.startsWith(SELF)
    );
}

/** The path of this module, or of the program that contains it. */
const SELF = `${decodeURIComponent(new URL(import.meta.url).pathname)}:`;

/** The registry that a module exports, as "registry" or by default. */
export function registryIn(module: Readonly<Record<string, unknown>>): Registry | undefined {
  return [module["registry"], module["default"]].find(isRegistry);
}

/** Checks the shape, because the module may import another copy of plue. */
function isRegistry(value: unknown): value is Registry {
  const { select, acquire, subscribe, updateTool } = (value ?? {}) as Partial<Registry>;
  return [select, acquire, subscribe, updateTool].every((method) => typeof method === "function");
}
