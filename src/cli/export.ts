/**
 * `plue export`, `plue import` and `plue check`: print tools in a provider's format, with the
 * losses; print tools of documents as definitions; and report the problems of a toolset.
 */

import { writeFile } from "node:fs/promises";
import { measureTokens } from "../finding/mod.ts";
import { lookAlikes, textFindings } from "../formats/import_findings.ts";
import {
  exportTools,
  isTargetName,
  listTargets,
  type Loss,
  TARGET_ALIASES,
  type TargetName,
} from "../formats/mod.ts";
import { cleanText, clip, describeThrown, describeTool, nearIds, type Tool } from "../tool/mod.ts";
import { flagsOf } from "./arguments.ts";
import { type Flags, toolsFrom } from "./show.ts";
import { counted, EXIT, type Terminal, usageError } from "./terminal.ts";

export function targetNames(): readonly string[] {
  return [...listTargets().map(({ id }) => id), ...Object.keys(TARGET_ALIASES)].sort();
}

export function targetOf(name: string): TargetName {
  if (isTargetName(name)) return name;
  const names = targetNames();
  const near = nearIds(name, names).join(" or ");
  const hint = near === "" ? `the targets are ${names.join(", ")}` : `did you mean ${near}?`;
  throw usageError(`Cannot export to "${clip(name)}": ${hint}`);
}

const FEWER_TOOLS =
  "Send fewer tools: filter them (--only, --category, --tag, --max-risk), let the " +
  "model find them through a bridge (plue serve --bridge, createToolBridge), or choose them for " +
  "each request within a budget of tokens (fitBudget)";

/**
 * Prints the tools in a target's format, or the keywords that the target cannot express.
 *
 * @returns The exit code: 1 if a tool could not be exported.
 */
export async function exportTo(
  sources: readonly string[],
  flags: Flags & { readonly to: string; readonly losses?: boolean },
  terminal: Terminal,
): Promise<number> {
  const target = targetOf(flags.to);
  await using loaded = await toolsFrom(sources, flags, terminal.io);
  const { toolset } = loaded;
  const { tools, losses, rejected, warnings, names } = exportTools(toolset, target);
  for (const { message } of warnings) terminal.warn(message);
  const over = rejected.filter(({ rule }) => rule === "maxTools");
  for (const { tool, rule, message } of rejected) {
    if (rule !== "maxTools") terminal.reject(`${tool}: ${message}`);
  }
  if (over[0] !== undefined) {
    terminal.reject(`${counted(over.length, "tool")}, from ${over[0].tool} on: ${over[0].message}`);
    terminal.note(FEWER_TOOLS);
  }
  if (flags.losses !== true) {
    terminal.printJson(tools);
    if (!terminal.isJson && losses.length > 0) {
      terminal.note(`${counted(losses.length, "loss")}; --losses shows them`);
    }
  } else if (terminal.isJson) {
    const wire = Object.fromEntries(toolset.ids.map((id) => [id, names.nameOf(id)]));
    terminal.printJson({ tools, losses, rejected, warnings, names: wire });
  } else if (losses.length > 0) {
    terminal.print(terminal.table(
      ["TOOL", "WHERE", "KEYWORD", "GRADE", "WHAT"],
      losses.map(({ tool, side, path, keyword, grade, message }) => [
        ...[tool, `${side}${path}`, keyword, grade, message],
      ]),
      { GRADE: { lost: "red", weakened: "yellow", ambiguous: "yellow", moved: "dim" } },
    ));
  } else terminal.note(`Nothing is lost on the way to ${target}`);
  return rejected.length > 0 ? EXIT.failed : EXIT.ok;
}

/**
 * Prints the tools of a document, or writes them as definitions into a file.
 *
 * @returns The exit code: 1 if a tool could not be imported.
 */
export async function importFrom(
  source: string,
  flags: Flags & { readonly out?: string; readonly force?: boolean },
  terminal: Terminal,
): Promise<number> {
  if (flags.out !== undefined && !/\.(?:[cm]?[jt]s|json)$/.test(flags.out)) {
    throw usageError(`Cannot write "${flags.out}": its name must end in .ts, .js or .json`);
  }
  await using loaded = await toolsFrom([source], flags, terminal.io);
  const { registry, imports } = loaded;
  const tools = registry.tools.filter(({ isAvailable }) => isAvailable !== false);
  const warnings = imports.flatMap((one) => one.warnings);
  const rejected = imports.flatMap((one) => one.rejected);
  if (flags.out !== undefined) {
    const text = definitionsText(flags.out, loaded.sources, tools);
    const flag = flags.force === true ? "w" : "wx";
    await writeFile(flags.out, text, { flag }).catch((cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EEXIST"
        ? "it exists already; --force overwrites it"
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
    terminal.reject(`${name} ${path}: ${message}`);
  }
  return rejected.length > 0 ? EXIT.failed : EXIT.ok;
}

function definitionsText(file: string, sources: readonly string[], tools: readonly Tool[]): string {
  const definitions = tools.map((tool) => ({
    ...describeTool(tool),
    ...{ id: undefined, executable: undefined },
  }));
  const json = JSON.stringify(definitions, null, 2);
  if (file.endsWith(".json")) return `${json}\n`;
  // In an object literal, the key `__proto__` would set the prototype.
  const literal = json.replaceAll(/^( *)"__proto__":/gm, '$1["__proto__"]:');
  // A name must not close the comment.
  const name = cleanText(sources.join(", "), 200).replaceAll("*/", "* /");
  const type = /\.[cm]?ts$/.test(file);
  return [
    `/** Tools of ${name}. They are definitions: give each an \`execute\` function. */`,
    ...(type ? [`import type { ToolDefinition } from "@plue/tools";`, ""] : []),
    `export const tools${type ? ": readonly ToolDefinition[]" : ""} = ${literal};`,
    "",
  ].join("\n");
}

interface CheckProblem {
  /** An error makes the check fail, a warning only with `--strict`. */
  readonly level: "error" | "warning";
  readonly tool: string;
  readonly rule: string;
  readonly message: string;
}

/** The default targets of the check: one per large provider. */
const TARGETS: readonly TargetName[] = ["openai.strict", "anthropic", "gemini", "mcp"];

/** A shorter description cannot explain when to use a tool. */
const SHORT_DESCRIPTION = 20;

/**
 * Prints the problems of the tools, and their tokens; or checks a `plue.json`.
 *
 * @returns The exit code: 1 if there are errors.
 */
export async function check(
  sources: readonly string[],
  flags: Flags & {
    readonly to?: readonly string[];
    readonly strict?: boolean;
    readonly connect?: boolean;
  },
  terminal: Terminal,
): Promise<number> {
  const targets = flags.to?.map(targetOf) ?? TARGETS;
  const [path] = sources;
  const { checkSettings, isSettings } = await import("./gateway/serve.ts");
  if (path !== undefined && await isSettings(path)) {
    // The flags for a file (connect, strict, json) and all defaults are `true`.
    const others = Object.entries(flags).filter(([, value]) => value !== true);
    const unused = sources[1] ?? others[0]?.[0];
    if (unused !== undefined) {
      throw usageError(`Cannot check: "${unused}" has no effect with ${path}; leave it out`);
    }
    return await checkSettings(path, flags, terminal);
  }
  if (flags.connect === true) {
    throw usageError("Cannot check: --connect has no effect without a plue.json; leave it out");
  }
  await using loaded = await toolsFrom(sources, flags, terminal.io);
  const tools = loaded.toolset.available();
  const exports = targets.map((target) => ({ target, exported: exportTools(tools, target) }));
  const problems = [
    ...loaded.imports.flatMap(({ rejected }) =>
      rejected.map(({ name = "", message }) => error(name, "rejected", message))
    ),
    ...checkTexts(tools),
    ...exports.flatMap(({ target, exported: { losses, rejected } }) => [
      ...rejected.map(({ tool, message }) => error(tool, target, message)),
      ...weakened(target, losses),
    ]),
  ];
  const tokens = exports.map(({ target, exported }) => ({ target, ...measureTokens(exported) }));
  if (terminal.isJson) terminal.printJson({ problems, tokens });
  else {
    if (problems.length > 0) {
      terminal.print(terminal.table(
        ["LEVEL", "TOOL", "RULE", "WHAT"],
        problems.map(({ level, tool, rule, message }) => [level, tool, rule, message]),
        { LEVEL: { error: "red", warning: "yellow" } },
      ));
      terminal.print("");
    }
    terminal.print(terminal.table(
      ["TOKENS", ...targets],
      [
        ...tools.map(({ id }) => [
          id,
          ...tokens.map((one) => String(one.tools.find((tool) => tool.id === id)?.tokens ?? "-")),
        ]),
        ["together", ...tokens.map(({ total }) => String(total))],
      ],
    ));
    const errors = counted(problems.filter(isError).length, "error");
    const warnings = counted(problems.filter((one) => !isError(one)).length, "warning");
    terminal.note(`${errors}, ${warnings} in ${counted(tools.length, "tool")}`);
  }
  return problems.some((one) => isError(one) || flags.strict === true) ? EXIT.failed : EXIT.ok;
}

const isError = ({ level }: CheckProblem): boolean => level === "error";

const problemOf = (level: CheckProblem["level"]) =>
(
  tool: string,
  rule: string,
  message: string,
): CheckProblem => ({
  ...{ level, tool, rule, message },
});
const error = problemOf("error");
const warning = problemOf("warning");

function checkTexts(tools: readonly Tool[]): readonly CheckProblem[] {
  const clean = new WeakSet<object>();
  const alike = lookAlikes(tools, []);
  return tools.flatMap((tool) => {
    const { id, description } = tool;
    const other = alike.get(id);
    const undescribed = flagsOf(tool).filter(({ argument }) => argument.description === "");
    const warnings = [
      ...(description.length < SHORT_DESCRIPTION
        ? ["Its description does not explain when to use it"]
        : []),
      ...undescribed.map(({ name }) => `Its argument "${name}" has no description`),
    ];
    return [
      ...textFindings(describeTool(tool), clean).map(({ rule, path, message }) =>
        error(id, rule, `${path}: ${message}`)
      ),
      ...(other === undefined
        ? []
        : [error(id, "name", `Its name looks like that of "${other}", or becomes the same`)]),
      ...warnings.map((message) => warning(id, "description", message)),
    ];
  });
}

/** Returns a warning for each keyword of a tool that a target does not check. */
function weakened(target: string, losses: readonly Loss[]): readonly CheckProblem[] {
  const seen = new Set<string>();
  return losses.flatMap(({ tool, side, path, keyword, grade, widens, message }) => {
    const key = `${tool} ${keyword}`;
    if (side !== "input" || !(widens || grade === "lost") || seen.has(key)) return [];
    seen.add(key);
    return [warning(tool, target, `${path}: ${message}`)];
  });
}
