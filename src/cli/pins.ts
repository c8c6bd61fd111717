/** `plue pins`: shows the tools that pins hide, and approves them. */

import { confirm, isCancel } from "@clack/prompts";
import type { HeldTool } from "../formats/mod.ts";
import { canonicalJson, cleanText, escapeInvisible } from "../tool/mod.ts";
import { type Flags, toolsFrom } from "./show.ts";
import { counted, EXIT, type Terminal, usageError } from "./terminal.ts";

/**
 * Shows hidden tools with their changes. Approves them with `--yes`, or if a person agrees on a
 * terminal, and only the definitions that were shown.
 *
 * @param ids The tools; without ids, all hidden tools.
 * @returns The exit code: 1 if tools are still hidden.
 */
export async function reviewPins(
  ids: readonly string[],
  flags: Flags & { readonly yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  if (flags.pins === undefined) throw usageError("Cannot show pins: name their file with --pins");
  await using loaded = await toolsFrom([], flags, terminal.io);
  // A server may offer other tools while a person decides.
  const imports = [...loaded.pinned, ...loaded.servers].map((one) => [one, one.held] as const);
  const held = imports.flatMap(([, own]) => own);
  const unknown = ids.find((id) => !held.some((one) => one.id === id));
  if (unknown !== undefined) {
    throw usageError(`Cannot approve "${cleanText(unknown, 100)}": the pins do not hide it`);
  }
  const approved = new Set<HeldTool>();
  for (const tool of held.filter(({ id }) => ids.length === 0 || ids.includes(id))) {
    if (!terminal.isJson) terminal.print(describeHeld(tool));
    if (flags.yes === true || await isApproved(tool, terminal)) approved.add(tool);
  }
  for (const [one, own] of imports) {
    const agreed = own.filter((tool) => approved.has(tool));
    if (agreed.length > 0) await one.approve(...agreed);
  }
  const hidden = held.filter((tool) => !approved.has(tool));
  if (terminal.isJson) {
    const entries = (tools: Iterable<HeldTool>) => [...tools].map(({ tool: _, ...entry }) => entry);
    terminal.printJson({ approved: entries(approved), hidden: entries(hidden) });
  } else terminal.note(`${counted(approved.size, "tool")} approved, ${hidden.length} hidden`);
  return hidden.length > 0 ? EXIT.failed : EXIT.ok;
}

async function isApproved({ id }: HeldTool, terminal: Terminal): Promise<boolean> {
  if (!terminal.canAsk || terminal.isJson) return false;
  const { stdin: input, stderr: output, signal } = terminal.io;
  const message = `Approve ${cleanText(id, 200)}?`;
  const answer = await confirm({ input, output, signal, message, initialValue: false });
  // In a prompt, Ctrl-C is a key and does not raise a signal.
  if (isCancel(answer)) terminal.io.interrupt();
  terminal.io.signal.throwIfAborted();
  return answer === true;
}

/** Describes the whole difference: a part that is cut off or invisible could not be approved. */
function describeHeld({ id, reason, before = {}, after = {} }: HeldTool): string {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  const lines = [...fields].flatMap((field) => {
    const [old, now] = [before, after].map((definition) =>
      canonicalJson(definition[field] ?? null)
    );
    return old === now ? [] : [
      ...(field in before ? [`  - ${field}: ${old}`] : []),
      ...(field in after ? [`  + ${field}: ${now}`] : []),
    ];
  });
  return escapeInvisible([`${id}: ${reason}`, ...lines].join("\n"));
}
