/**
 * `plue check`: the problems of a toolset before a model sees it, and its cost in tokens.
 *
 * @module
 */

import { measureTokens } from "../finding/mod.ts";
import { exportTools, type Loss, type TargetName } from "../formats/mod.ts";
import { lookAlikes, textFindings } from "../formats/import_findings.ts";
import { describeTool, type Tool } from "../tool/mod.ts";
import { flagsOf } from "./arguments.ts";
import { targetOf } from "./export.ts";
import { type SelectionFlags, type SourceFlags, toolsetOf, toolsFrom } from "./selection.ts";
import { counted, EXIT, type Terminal } from "./terminal.ts";

/** The flags of `plue check`. */
export interface CheckFlags extends SourceFlags, SelectionFlags {
  readonly to?: readonly string[];
  readonly strict?: boolean;
}

/** One thing that should be mended. */
export interface CheckProblem {
  /** An error makes the check fail, a warning only with `--strict`. */
  readonly level: "error" | "warning";
  readonly tool: string;
  readonly rule: string;
  readonly message: string;
}

/** The targets that are looked at unless others are named: one per large provider. */
const TARGETS: readonly TargetName[] = ["openai.strict", "anthropic", "gemini", "mcp"];

/** A shorter description does not explain when to use a tool. */
const SHORT_DESCRIPTION = 20;

/**
 * Prints the problems of the tools, and their tokens.
 *
 * @returns The exit code: 1 if there are errors.
 */
export async function check(
  sources: readonly string[],
  flags: CheckFlags,
  terminal: Terminal,
): Promise<number> {
  const targets = flags.to?.map(targetOf) ?? TARGETS;
  await using loaded = await toolsFrom(sources, flags, terminal.io);
  const tools = toolsetOf(loaded, flags).available();
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
        (text, column) =>
          column === 0 ? terminal.paint(text === "error" ? "red" : "yellow", text) : text,
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
    const errors = problems.filter(({ level }) => level === "error").length;
    terminal.note(
      `${counted(errors, "error")}, ${counted(problems.length - errors, "warning")} in ${
        counted(tools.length, "tool")
      }`,
    );
  }
  return problems.some(({ level }) => level === "error" || flags.strict === true)
    ? EXIT.failed
    : EXIT.ok;
}

function error(tool: string, rule: string, message: string): CheckProblem {
  return { level: "error", tool, rule, message };
}

function warning(tool: string, rule: string, message: string): CheckProblem {
  return { level: "warning", tool, rule, message };
}

/** Returns the problems of the tools' descriptions, for every target. */
function checkTexts(tools: readonly Tool[]): readonly CheckProblem[] {
  const clean = new WeakSet<object>();
  const alike = lookAlikes(tools, []);
  return tools.flatMap((tool) => {
    const { id, description } = tool;
    const other = alike.get(id);
    return [
      ...textFindings(describeTool(tool), clean).map(({ rule, path, message }) =>
        error(id, rule, `${path}: ${message}`)
      ),
      ...(other === undefined
        ? []
        : [error(id, "name", `Its name looks like that of "${other}", or becomes the same`)]),
      ...(description.length < SHORT_DESCRIPTION
        ? [warning(id, "description", "Its description does not explain when to use it")]
        : []),
      ...flagsOf(tool).filter((flag) => flag.description === "").map(({ name }) =>
        warning(id, "description", `Its argument "${name}" has no description`)
      ),
    ];
  });
}

/** Returns a warning for each tool and keyword that a target does not check. */
function weakened(target: string, losses: readonly Loss[]): readonly CheckProblem[] {
  const seen = new Set<string>();
  return losses.flatMap(({ tool, side, path, keyword, grade, widens, message }) => {
    const key = `${tool} ${keyword}`;
    if (side !== "input" || !(widens || grade === "lost") || seen.has(key)) return [];
    seen.add(key);
    return [warning(tool, target, `${path}: ${message}`)];
  });
}
