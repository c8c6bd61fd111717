/** The tools that the flags select, and `plue list`, `plue show`, `plue explain`, `plue search`. */

import { Option } from "commander";
import { toolPins } from "../adapters/pins/mod.ts";
import { explainCall } from "../adapters/rules/mod.ts";
import { ToolDispatcher } from "../adapters/typebox/mod.ts";
import type { HeldTool } from "../formats/mod.ts";
import type { Registry, ToolHit } from "../registry/mod.ts";
import { searchToolsetAsync } from "../registry/search/mod.ts";
import { type Selection, selectionFrom, type Toolset, VOCABULARY } from "../select/mod.ts";
import { cleanText, describeTool, nearText, type Tool, type ToolReader } from "../tool/mod.ts";
import { flagsOf } from "./arguments.ts";
import { type LoadedTools, loadTools } from "./sources/mod.ts";
import * as cli from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

/**
 * The flags for the sources, the criteria of a selection and the reader of the descriptions (see
 * `VOCABULARY`). `program.ts` describes further flags of the commands.
 */
export interface Flags extends ToolReader {
  readonly from?: readonly string[];
  readonly header?: readonly string[];
  readonly baseUrl?: string;
  readonly pins?: string;
  readonly [flag: string]: unknown;
}

export function selectionOf(flags: Flags): Selection {
  const values = Object.entries(VOCABULARY)
    .map(([name, { flag }]) => [name, flags[new Option(flag).attributeName()]]);
  return selectionFrom(Object.fromEntries(values)) ?? {};
}

/**
 * Loads the sources that flags and words name.
 *
 * @returns The tools, and the toolset that the caller of the flags sees.
 */
export async function toolsFrom(
  words: readonly string[],
  flags: Flags,
  io: cli.CommandIo,
  mayBeNone = false,
): Promise<LoadedTools & { readonly toolset: Toolset }> {
  const { from = [], header, baseUrl, pins, model, provider, locale } = flags;
  const headers = header && Object.fromEntries(header.map(readHeader));
  const loaded = await loadTools([...words, ...from], io, {
    ...{ headers, baseUrl, mayBeNone },
    pins: pins === undefined ? undefined : toolPins(pins, { onHeld: heldReporter(pins, io) }),
    reader: { model, provider, locale },
  });
  const { registry, selection } = loaded;
  return {
    ...loaded,
    get toolset() {
      return registry.select(selection).narrow(selectionOf(flags));
    },
  };
}

/** The maximum number of hidden tools that one report names. */
const MAX_HELD = 5;

/** Prints the tools that pins hide: all tools of a check in one report. */
function heldReporter(file: string, { stderr }: cli.CommandIo): (held: HeldTool) => void {
  let reported: HeldTool[] = [];
  const report = (): void => {
    for (const { id, reason } of reported.slice(0, MAX_HELD)) {
      stderr.write(`warning: "${cleanText(id, 100)}" is hidden: ${cleanText(reason, 1_000)}\n`);
    }
    const more = reported.length - MAX_HELD;
    if (more > 0) stderr.write(`warning: the pins hide ${cli.counted(more, "more tool")}\n`);
    stderr.write(`Review and approve changes: plue pins --pins ${file} --from …\n`);
    reported = [];
  };
  return (held) => {
    if (reported.push(held) === 1) queueMicrotask(report);
  };
}

export function readHeader(text: string): readonly [string, string] {
  const [, name = "", value = ""] = /^([\w!#$%&'*+.^`|~-]+): *(.*)$/.exec(text) ?? [];
  // The message does not repeat the text: it may be a token.
  if (name === "") throw cli.usageError('Cannot read --header: it must be "name: value"');
  return [name.toLowerCase(), value];
}

export async function list(
  sources: readonly string[],
  flags: Flags,
  terminal: Terminal,
): Promise<void> {
  await using loaded = await toolsFrom(sources, flags, terminal.io);
  const tools = loaded.toolset.available();
  for (const { message } of loaded.imports.flatMap(({ rejected }) => rejected)) {
    terminal.warn(message);
  }
  if (terminal.isJson) return terminal.printJson({ tools: tools.map(describeTool) });
  const all = loaded.registry.count;
  if (tools.length > 0) {
    terminal.print(terminal.table(
      ["TOOL", "RISK", "CATEGORY", "DESCRIPTION"],
      tools.map((tool) => [tool.id, tool.risk, tool.category ?? "", tool.description]),
      { RISK: cli.RISK_STYLES },
    ));
  }
  if (tools.length < all || all === 0) {
    const hint = all > 0 ? '; "plue explain TOOL" says why one is missing' : "";
    terminal.note(`${tools.length} of ${cli.counted(all, "tool")}${hint}`);
  }
}

export async function show(id: string, flags: Flags, terminal: Terminal): Promise<void> {
  await using loaded = await toolsFrom([], flags, terminal.io);
  const tool = findTool(loaded.registry, loaded.toolset, id);
  terminal.printResult(describeTool(tool), () => toolText(terminal, tool));
}

export function toolText(terminal: Terminal, tool: Tool): string {
  const needs = [
    ...(tool.requiresApproval ? ["approval"] : []),
    ...(tool.requiresTransaction ? ["a transaction"] : []),
    ...(tool.execute === undefined ? ["an execute function: it is a definition only"] : []),
  ];
  const facts = {
    category: tool.category,
    tags: tool.tags.join(", "),
    roles: tool.roles?.join(", "),
    scopes: tool.scopes.join(", "),
    needs: needs.join(", "),
    deprecated: tool.deprecated && String(tool.deprecated),
    returns: JSON.stringify(tool.returns),
  };
  const flags = flagsOf(tool);
  return [
    terminal.paint("bold", tool.id) + (tool.title === undefined ? "" : `  ${clean(tool.title)}`),
    "",
    clean(tool.description),
    "",
    `  ${"risk".padEnd(10)}  ${terminal.paint(cli.RISK_STYLES[tool.risk], tool.risk)}`,
    ...Object.entries(facts).flatMap(([name, value]) =>
      value ? [`  ${name.padEnd(10)}  ${clean(value)}`] : []
    ),
    ...(flags.length === 0 ? [] : [
      "",
      terminal.table(
        ["FLAG", "TYPE", "", "DESCRIPTION"],
        flags.map(({ name, argument: { type, isSwitch, description }, isRequired }) => [
          `--${name}`,
          isSwitch ? "switch" : type,
          isRequired ? "required" : "",
          description,
        ]),
        { "": { required: "yellow" } },
      ),
    ]),
    ...tool.examples.slice(0, 3).flatMap(({ input }) => [
      "",
      `  plue call ${tool.id} '${clean(JSON.stringify(input).replaceAll("'", "'\\''"))}'`,
    ]),
  ].join("\n");
}

function clean(text: string): string {
  return cleanText(text, 10_000);
}

export async function explain(
  id: string,
  flags: Flags & { readonly arguments?: string },
  terminal: Terminal,
): Promise<void> {
  await using loaded = await toolsFrom([], flags, terminal.io);
  if (!loaded.registry.hasTool(id)) throw unknownTool(id, loaded.registry.ids);
  const { arguments: args } = flags;
  if (args !== undefined) {
    const dispatcher = new ToolDispatcher(loaded.registry, loaded.dispatch)
      .withToolset(loaded.toolset);
    const decision = await explainCall(dispatcher, { name: id, arguments: args });
    const lines = decision.rules.map(({ rule, verdict, reason }) =>
      `  ${verdict.padEnd(5)}  ${clean(rule)}${reason === undefined ? "" : `: ${clean(reason)}`}`
    );
    const summary = clean(
      decision.error?.message ?? `"${decision.tool ?? id}": ${decision.verdict}`,
    );
    return terminal.printResult(decision, () => [summary, ...lines].join("\n"));
  }
  const explanation = loaded.toolset.explain(id);
  const lines = explanation.steps.map(({ step, name, passed, reason }) => {
    const mark = passed ? terminal.paint("green", "passed") : terminal.paint("red", "failed");
    const what = name === undefined ? step : `${step} ${name}`;
    return `  ${mark}  ${clean(what)}${reason === undefined ? "" : `: ${clean(reason)}`}`;
  });
  terminal.printResult(explanation, () => [clean(explanation.reason), ...lines].join("\n"));
}

export async function search(
  words: readonly string[],
  flags: Flags & { readonly limit?: number },
  terminal: Terminal,
): Promise<void> {
  await using loaded = await toolsFrom([], flags, terminal.io);
  const { limit } = flags;
  const options = limit === undefined ? {} : { limit };
  const found = await searchToolsetAsync(loaded.toolset, words.join(" "), options);
  const hits = new Map<string, ToolHit>(found.hits.map((hit) => [hit.id, hit]));
  if (terminal.isJson) {
    const tools = found.map((tool) => ({ ...describeTool(tool), hit: hits.get(tool.id) }));
    return terminal.printJson({ tools });
  }
  if (found.length === 0) return terminal.note("No tool serves this question");
  terminal.print(terminal.table(
    ["SCORE", "TOOL", "RISK", "DESCRIPTION"],
    found.map(({ id, risk, description }) => [
      ...[(hits.get(id)?.score ?? 0).toFixed(2), id, risk, description],
    ]),
    { RISK: cli.RISK_STYLES },
  ));
}

/** Finds a tool of the caller by its id or an alias, with the description for the reader. */
export function findTool(registry: Registry, toolset: Toolset, id: string): Tool {
  const tool = toolset.resolve(id);
  if (tool === undefined) throw unknownTool(id, toolset.ids, registry.hasTool(id));
  return toolset.get(tool.id) ?? tool;
}

function unknownTool(id: string, ids: Iterable<string>, isHidden = false): cli.CommandError {
  const near = nearText(id, ids);
  const hint = isHidden
    ? '"plue explain" with the same flags shows why it is omitted'
    : near !== ""
    ? `did you mean ${near}?`
    : '"plue list" shows all tools';
  const message = `Cannot find the tool "${cleanText(id, 100)}": ${hint}`;
  return new cli.CommandError(message, cli.EXIT_CODES.unknown_tool);
}
