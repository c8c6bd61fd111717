/**
 * `plue export` and `plue import`: tools in a provider's shape, with the losses, and tools of
 * documents as definitions.
 *
 * @module
 */

import { writeFile } from "node:fs/promises";
import {
  exportTools,
  isTargetName,
  listTargets,
  type Loss,
  type RequestSettings,
  type TargetName,
} from "../formats/mod.ts";
import type { Toolset } from "../select/mod.ts";
import { cleanText, clip, describeThrown, describeTool, nearIds, type Tool } from "../tool/mod.ts";
import { type SelectionFlags, type SourceFlags, toolsetOf, toolsFrom } from "./selection.ts";
import { counted, EXIT, type Terminal, usageError } from "./terminal.ts";

/** The flags of `plue export`. */
export interface ExportFlags extends SourceFlags, SelectionFlags {
  readonly to: string;
  readonly losses?: boolean;
  readonly toolChoice?: string;
  readonly parallel?: "true" | "false";
}

/** The names of all targets. */
export function targetNames(): readonly string[] {
  return listTargets().flatMap(({ id, aliases }) => [id, ...aliases]).sort();
}

/** Reads the name of a target. */
export function targetOf(name: string): TargetName {
  if (isTargetName(name)) return name;
  const names = targetNames();
  const near = nearIds(name, names);
  throw usageError(
    `Cannot export to "${clip(name)}": ${
      near.length > 0 ? `did you mean ${near.join(" or ")}?` : `the targets are ${names.join(", ")}`
    }`,
  );
}

/**
 * Prints the tools in a target's shape, or the keywords that the target cannot express.
 *
 * @returns The exit code: 1 if a tool could not be exported.
 */
export async function exportTo(
  sources: readonly string[],
  flags: ExportFlags,
  terminal: Terminal,
): Promise<number> {
  const target = targetOf(flags.to);
  await using loaded = await toolsFrom(sources, flags, terminal.io);
  const toolset = toolsetOf(loaded, flags);
  const settings = settingsOf(flags, toolset);
  const exported = exportTools(toolset, target, settings);
  const { tools, losses, rejected, warnings, names } = exported;
  const request = settings && { request: exported.request };
  for (const { message } of warnings) terminal.warn(message);
  for (const { tool, message } of rejected) {
    const what = cleanText(`${tool}: ${message}`, 1_000);
    terminal.note(`${terminal.paint("red", "rejected", terminal.io.stderr)} ${what}`);
  }
  if (terminal.isJson) {
    const wire = Object.fromEntries(toolset.ids.map((id) => [id, names.nameOf(id)]));
    terminal.printJson(
      flags.losses === true
        ? { tools, ...request, losses, rejected, warnings, names: wire }
        : request
        ? { tools, ...request }
        : tools,
    );
  } else if (flags.losses === true) {
    if (losses.length > 0) terminal.print(lossTable(terminal, losses));
    else terminal.note(`Nothing is lost on the way to ${target}`);
  } else {
    terminal.printJson(request ? { tools, ...request } : tools);
    if (losses.length > 0) terminal.note(`${counted(losses.length, "loss")}; --losses shows them`);
  }
  return rejected.length > 0 ? EXIT.failed : EXIT.ok;
}

/** Returns the settings of a request in the flags; `undefined` if there are none. */
function settingsOf(
  { toolChoice, parallel }: ExportFlags,
  toolset: Toolset,
): RequestSettings | undefined {
  if (toolChoice === undefined && parallel === undefined) return undefined;
  const isWord = toolChoice === "auto" || toolChoice === "none" || toolChoice === "required";
  if (toolChoice !== undefined && !isWord && !toolset.has(toolChoice)) {
    throw usageError(
      `Cannot choose "${clip(toolChoice)}": ` +
        "--tool-choice takes auto, none, required or the id of a tool that is exported",
    );
  }
  return {
    ...(toolChoice === undefined ? {} : { toolChoice: isWord ? toolChoice : { tool: toolChoice } }),
    ...(parallel === undefined ? {} : { parallel: parallel === "true" }),
  };
}

const GRADES = { lost: "red", weakened: "yellow", ambiguous: "yellow", moved: "dim" } as const;

function lossTable(terminal: Terminal, losses: readonly Loss[]): string {
  return terminal.table(
    ["TOOL", "WHERE", "KEYWORD", "GRADE", "WHAT"],
    losses.map(({ tool, side, path, keyword, grade, message }) => [
      ...[tool, `${side}${path}`, keyword, grade, message],
    ]),
    (text, column) =>
      column === 3 ? terminal.paint(GRADES[text as keyof typeof GRADES], text) : text,
  );
}

/** The flags of `plue import`. */
export interface ImportFlags extends SourceFlags {
  readonly out?: string;
  readonly force?: boolean;
}

/**
 * Prints the tools of a document, or writes them as definitions into a file.
 *
 * @returns The exit code: 1 if a tool could not be imported.
 */
export async function importFrom(
  source: string,
  flags: ImportFlags,
  terminal: Terminal,
): Promise<number> {
  if (flags.out !== undefined && !/\.(?:[cm]?[jt]s|json)$/.test(flags.out)) {
    throw usageError(`Cannot write "${flags.out}": its name must end in .ts, .js or .json`);
  }
  await using loaded = await toolsFrom([source], flags, terminal.io);
  const { registry: { tools }, imports } = loaded;
  const warnings = imports.flatMap((one) => one.warnings);
  const rejected = imports.flatMap((one) => one.rejected);
  if (flags.out !== undefined) {
    const text = definitionsText(flags.out, loaded.sources, tools);
    const flag = flags.force === true ? "w" : "wx";
    await writeFile(flags.out, text, { flag }).catch((cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EEXIST"
        ? "it is there already; --force writes over it"
        : describeThrown(cause);
      throw usageError(`Cannot write "${flags.out}": ${why}`, { cause });
    });
    terminal.note(`Wrote ${counted(tools.length, "tool")} to ${flags.out}`);
  } else if (terminal.isJson) {
    terminal.printJson({ tools: tools.map(describeTool), warnings, rejected });
  } else {
    terminal.print(terminal.table(
      ["TOOL", "RISK", "DESCRIPTION"],
      tools.map(({ id, risk, description }) => [id, risk, description]),
    ));
  }
  for (const { tool, path, message } of warnings) {
    terminal.warn(`${tool === undefined ? "" : `${tool} `}${path}: ${message}`);
  }
  for (const { name = "", path, message } of rejected) {
    const what = cleanText(`${name} ${path}: ${message}`, 1_000);
    terminal.note(`${terminal.paint("red", "rejected", terminal.io.stderr)} ${what}`);
  }
  return rejected.length > 0 ? EXIT.failed : EXIT.ok;
}

/** Returns the fields of a definition, from the description of a tool. */
const NOT_DEFINED = new Set(["id", "executable"]);

/** Definitions as a module or, by the file's name, as JSON. */
function definitionsText(
  file: string,
  sources: readonly string[],
  tools: readonly Tool[],
): string {
  const definitions = tools.map((tool) =>
    Object.fromEntries(
      Object.entries(describeTool(tool)).filter(([name, value]) =>
        !NOT_DEFINED.has(name) && value !== undefined
      ),
    )
  );
  const json = JSON.stringify(definitions, null, 2);
  if (file.endsWith(".json")) return `${json}\n`;
  // In an object literal, this key alone would set the prototype.
  const literal = json.replaceAll(/^( *)"__proto__":/gm, '$1["__proto__"]:');
  // A comment must not be closed.
  const name = cleanText(sources.join(", "), 200).replaceAll("*/", "* /");
  const type = /\.[cm]?ts$/.test(file);
  return [
    `/** Tools of ${name}. They are definitions: give each an \`execute\` function. */`,
    ...(type ? [`import type { ToolDefinition } from "@plue/tools";`, ""] : []),
    `export const tools${type ? ": readonly ToolDefinition[]" : ""} = ${literal};`,
    "",
  ].join("\n");
}
