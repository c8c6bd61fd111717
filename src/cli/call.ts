/**
 * `plue call`: calls a tool, shows its questions on the terminal, and prints its result.
 *
 * @module
 */

import { confirm, isCancel, log, select, text } from "@clack/prompts";
import { Presets, SingleBar } from "cli-progress";
import { readFile } from "node:fs/promises";
import { text as readAll } from "node:stream/consumers";
import { ToolDispatcher } from "../adapters/typebox/mod.ts";
import type { CallInfo, DispatchContext, ToolProgress } from "../execute/mod.ts";
import {
  type Answer,
  argumentsText,
  cleanText,
  type Question,
  setOwn,
  type ToolFailure,
} from "../tool/mod.ts";
import { type AskedField, askedFields, readArguments } from "./arguments.ts";
import { type Flags, toolsFrom } from "./selection.ts";
import { findTool, toolText } from "./show.ts";
import { EXIT, EXIT_CODES, type Terminal, usageError } from "./terminal.ts";

/** The maximum length of foreign text, in characters. */
const MAX_TEXT = 2_000;
/**
 * The maximum length of arguments in a question, in characters. Longer arguments are never cut, and
 * therefore cannot be approved.
 */
const MAX_ARGUMENTS = 20_000;

/** Answers questions; the function of a call's context. */
export type AnswerQuestion = NonNullable<DispatchContext["onQuestion"]>;

/**
 * Makes a function that answers a call's questions.
 *
 * @param isApproved True for `--yes`: approvals are given without a question.
 * @param before Runs before a question, so that nothing else draws on the terminal.
 * @returns A function that returns `undefined` if there is no person to ask.
 */
export function answerOnTerminal(
  terminal: Terminal,
  isApproved: boolean,
  before: () => void,
): AnswerQuestion {
  const ask: AnswerQuestion = async (question, call) => {
    if (call.signal.aborted) return undefined;
    before();
    const answer = await new Prompts(terminal, call).ask(question);
    // In a prompt, Ctrl-C is a key and no signal.
    if (answer?.action === "cancel") terminal.io.interrupt();
    return answer;
  };
  let last: Promise<unknown> = Promise.resolve();
  return async (question, call) => {
    if (isApproved && question.kind === "approval") return { action: "accept" };
    if (!terminal.canAsk) return undefined;
    // One at a time: each key that is typed goes to all prompts that are open.
    const answer = last.then(() => ask(question, call));
    last = answer.catch(() => {});
    return await answer;
  };
}

/** The person went away from a prompt. */
const LEFT: unique symbol = Symbol("left");

/** The prompts for the questions of one call. */
class Prompts {
  readonly #terminal: Terminal;
  readonly #call: CallInfo;
  readonly #options: {
    readonly input: Terminal["io"]["stdin"];
    readonly output: Terminal["io"]["stderr"];
    readonly signal: AbortSignal;
  };

  constructor(terminal: Terminal, call: CallInfo) {
    const { io } = terminal;
    this.#terminal = terminal;
    this.#call = call;
    this.#options = { input: io.stdin, output: io.stderr, signal: call.signal };
  }

  /** @returns The answer; `null` if the question cannot be shown as a whole. */
  async ask(question: Question): Promise<Answer | null> {
    for (const { message } of question.issues ?? []) {
      log.warn(cleanText(message, MAX_TEXT), { output: this.#options.output });
    }
    try {
      return await this.#answer(question);
    } catch (error) {
      if (error === LEFT) return { action: "cancel" };
      throw error;
    }
  }

  async #answer({ kind, message, schema, url, arguments: args }: Question): Promise<Answer | null> {
    const { tool } = this.#call;
    const words = cleanText(message, MAX_TEXT);
    if (kind === "approval") {
      const shown = argumentsText(args, MAX_ARGUMENTS);
      if (shown === undefined) {
        this.#terminal.warn(
          `${words} Its arguments are too long to be shown, so you are not asked`,
        );
        return null;
      }
      return await this.#confirm(`${words}\nRisk ${tool.risk}, with ${shown}`, false);
    }
    if (kind === "authorization") {
      return await this.#confirm(
        `${words}\nOpen ${cleanText(url ?? "", MAX_TEXT)} \u2013 done?`,
        true,
      );
    }
    if (schema === undefined) return await this.#confirm(words, true);
    const isWilling = await this.#taken(select({
      ...this.#options,
      message: `${tool.id} asks: ${words}`,
      options: [{ value: true, label: "Answer" }, { value: false, label: "Decline" }],
    }));
    if (!isWilling) return { action: "decline" };
    const content: Record<string, unknown> = {};
    for (const field of askedFields(schema)) {
      const value = await this.#value(field);
      if (field.name === undefined) return { action: "accept", content: value };
      if (value !== undefined) setOwn(content, field.name, value);
    }
    return { action: "accept", content };
  }

  async #confirm(message: string, initialValue: boolean): Promise<Answer> {
    const isYes = await this.#taken(confirm({ ...this.#options, message, initialValue }));
    return { action: isYes ? "accept" : "decline" };
  }

  /** Asks for one value; `undefined` if the person skips it. */
  async #value(field: AskedField): Promise<unknown> {
    const { name = "Answer", isRequired, argument } = field;
    const { description, isSwitch, values, otherwise } = argument;
    const message = cleanText(description === "" ? name : `${name}: ${description}`, MAX_TEXT);
    if (isSwitch) {
      return await this.#taken(
        confirm({ ...this.#options, message, initialValue: otherwise === true }),
      );
    }
    if (values.length > 0) {
      const options = values.map((value) => ({ value, label: cleanText(value, 200) }));
      const chosen = await this.#taken(select({
        ...this.#options,
        message,
        options: isRequired ? options : [...options, { value: "", label: "(nothing)" }],
        ...(otherwise === undefined ? {} : { initialValue: String(otherwise) }),
      }));
      return chosen === "" && !values.includes("") ? undefined : argument.convert(chosen);
    }
    const offered = typeof otherwise === "string" ? otherwise : JSON.stringify(otherwise) ?? "";
    const typed = await this.#taken(text({
      ...this.#options,
      message,
      // Else the person would send what the terminal cannot show.
      ...(cleanText(offered, MAX_TEXT) === offered ? { initialValue: offered } : {}),
      validate: (word) => isRequired && !word ? "It is required" : undefined,
    }));
    return (typed ?? "") === "" && !isRequired ? undefined : argument.convert(typed);
  }

  async #taken<Value>(asked: Promise<Value>): Promise<Exclude<Value, symbol>> {
    const value = await asked;
    if (isCancel(value)) throw LEFT;
    return value as Exclude<Value, symbol>;
  }
}

/** The flags of `plue call`. */
export interface CallFlags extends Flags {
  readonly yes?: boolean;
  readonly timeout?: number;
}

/**
 * Calls a tool.
 *
 * @param words The words after the tool's id: its arguments.
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
  const { registry, toolset } = loaded;
  const tool = findTool(registry, toolset, id);
  if (words.includes("--help") || words.includes("-h")) {
    terminal.print(toolText(terminal, tool));
    return EXIT.ok;
  }
  const args = await readArguments(
    tool,
    words,
    async (path) => path === "-" ? await readAll(io.stdin) : await readFile(path, "utf8"),
  );
  const meanwhile = new Meanwhile(terminal);
  const dispatcher = new ToolDispatcher(registry, {
    // A call may take longer than the default if `--timeout` allows it.
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
    // A failed call is reported as metadata, too.
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

/** Returns text unchanged, and everything else as JSON. */
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

/** The output of a running call: a bar on a terminal, lines on standard error. */
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
