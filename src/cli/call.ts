/**
 * `plue call`: one call, with its progress, its output and its questions, as a program of its own.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { Presets, SingleBar } from "cli-progress";
import { ToolDispatcher } from "../adapters/typebox/mod.ts";
import type { ToolProgress } from "../execute/mod.ts";
import { cleanText, type ToolFailure } from "../tool/mod.ts";
import { readArguments } from "./arguments.ts";
import { EXIT_CODES } from "./exit_codes.ts";
import { answerOnTerminal } from "./questions.ts";
import { type SelectionFlags, type SourceFlags, toolsetOf, toolsFrom } from "./selection.ts";
import { findTool, toolText } from "./show.ts";
import { EXIT, type Terminal, usageError } from "./terminal.ts";

/** The flags of `plue call`. */
export interface CallFlags extends SourceFlags, SelectionFlags {
  readonly yes?: boolean;
  readonly timeout?: number;
}

/**
 * Calls a tool.
 *
 * @param words What follows the tool's id: its arguments.
 * @returns The exit code.
 */
export async function call(
  id: string,
  words: readonly string[],
  flags: CallFlags,
  terminal: Terminal,
): Promise<number> {
  const { io } = terminal;
  const isLate = flags.from === undefined && !io.env["PLUE_TOOLS"] &&
    words.some((word) => /^(?:--from(?:=|$)|-f$)/.test(word));
  if (isLate) {
    throw usageError(`Cannot call "${id}": --from stands before the tool's id`);
  }
  await using loaded = await toolsFrom([], flags, io);
  const toolset = toolsetOf(loaded, flags);
  const tool = findTool(loaded, toolset, id);
  if (words.includes("--help") || words.includes("-h")) {
    terminal.print(toolText(terminal, tool));
    return EXIT.ok;
  }
  const args = await readArguments(
    tool,
    words,
    async (path) => path === "-" ? await text(io.stdin) : await readFile(path, "utf8"),
  );
  const meanwhile = new Meanwhile(terminal);
  const dispatcher = new ToolDispatcher(loaded.registry, {
    // A call may take longer than the default if that is asked for.
    ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout }),
    // A module's own approver decides first.
    ...(terminal.canAsk || flags.yes === true ? { approve: "ask" } : {}),
    ...loaded.dispatch,
  }).withToolset(toolset);
  const result = await dispatcher.dispatch({ name: tool.id, arguments: args }, {
    signal: io.signal,
    timeoutMs: flags.timeout,
    onQuestion: answerOnTerminal(terminal, flags.yes === true, () => meanwhile.pause()),
    progress: (step) => meanwhile.progress(step),
    output: (value) => meanwhile.line(value),
    // A failed call is told as metadata, too.
    metadata: (value) => {
      if (!isFailureNote(value)) meanwhile.line(value);
    },
  });
  meanwhile.pause();
  if (terminal.isJson) terminal.printJson(result);
  else if (result.ok) printContent(result.content, terminal);
  if (result.ok) return EXIT.ok;
  if (!terminal.isJson) printFailure(result, flags, terminal);
  return EXIT_CODES[result.error.code];
}

function isFailureNote(value: unknown): boolean {
  return (value as { readonly type?: unknown } | null)?.type === "error";
}

/** Text as it is, everything else as JSON. */
function printContent(content: unknown, terminal: Terminal): void {
  if (typeof content === "string") terminal.printForeign(content);
  else if (content !== undefined) terminal.printJson(content);
}

function printFailure(
  { error: { code, message, issues = [] } }: ToolFailure,
  { yes }: CallFlags,
  terminal: Terminal,
): void {
  const { io: { stderr } } = terminal;
  // The message repeats the issues. Here each has a line of its own, with its flag.
  const [first] = issues;
  const [head = message] = first === undefined ? [] : message.split(`: ${first.message}`);
  terminal.note(`${terminal.paint("red", code, stderr)}: ${cleanText(head, 10_000)}`);
  for (const { path, message: wrong } of issues) {
    const flag = `--${path.slice(1).replaceAll("/", ".")}`;
    const isArgument = code === "invalid_arguments" && path !== "" && wrong.startsWith(path);
    terminal.note(`  ${cleanText(isArgument ? flag + wrong.slice(path.length) : wrong, 1_000)}`);
  }
  if (code === "approval_required" && yes !== true) {
    terminal.note(
      terminal.canAsk
        ? "  Add --yes"
        : "  Call it on a terminal, where you are asked, or add --yes",
    );
  } else if (code.startsWith("input_")) {
    terminal.note("  Call it on a terminal, where you are asked");
  }
}

/** What a call says before it ends: a bar on a terminal, lines on standard error. */
class Meanwhile {
  readonly #terminal: Terminal;
  #bar: SingleBar | undefined;
  #total: number | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  progress({ done, total, message }: ToolProgress): void {
    const { io: { stderr } } = this.#terminal;
    const words = message === undefined ? "" : cleanText(message, 200).replaceAll("\n", " ");
    if (stderr.isTTY !== true) {
      const share = total === undefined ? `${done}` : `${done}/${total}`;
      return this.#terminal.note(`${share} ${words}`.trimEnd());
    }
    if (this.#bar === undefined || total !== this.#total) {
      this.pause();
      this.#total = total;
      this.#bar = new SingleBar({
        stream: stderr,
        format: total === undefined ? "{value} {words}" : "{bar} {value}/{total} {words}",
        clearOnComplete: true,
        gracefulExit: false,
        linewrap: null,
      }, Presets.shades_classic);
      this.#bar.start(total ?? done, done, { words });
    } else this.#bar.update(done, { words });
  }

  /** Writes a line above the bar. */
  line(value: unknown): void {
    this.pause();
    const text = typeof value === "string" ? value : JSON.stringify(value);
    this.#terminal.note(cleanText(text, 100_000).replace(/\n$/, ""));
  }

  /** Takes the bar away; the next step of the progress brings it back. */
  pause(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}
