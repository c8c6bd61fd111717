/** `plue call`: calls a tool, shows its questions on the terminal, and prints its result. */

import { confirm, isCancel, log, select, text } from "@clack/prompts";
import { Presets, SingleBar } from "cli-progress";
import type { Readable, Writable } from "node:stream";
import { ToolDispatcher } from "../adapters/typebox/mod.ts";
import type { CallInfo, DispatchContext, ToolProgress } from "../execute/mod.ts";
import type { Toolset } from "../select/mod.ts";
import {
  type Answer,
  argumentsText,
  cleanText,
  helpUrl,
  isObject,
  type Question,
  setOwn,
  type Tool,
  type ToolFailure,
} from "../tool/mod.ts";
import { askedFields, readArguments } from "./arguments.ts";
import { listenForCallbacks, readSettings } from "./serve/settings.ts";
import { findTool, type Flags, toolsFrom, toolText } from "./show.ts";
import { BASE_URL_ADVICE, type LoadedTools, unsentCalls } from "./sources/mod.ts";
import { EXIT, EXIT_CODES, readInput, type Terminal, usageError } from "./terminal.ts";

const MAX_TEXT = 2_000;
const MAX_URL = 20_000;
/** The maximum length of arguments in a question. Longer ones cannot be approved. */
const MAX_ARGUMENTS = 20_000;

/**
 * Makes a function that answers a call's questions; it returns `undefined` without a terminal.
 *
 * @param isApproved True for `--yes`: approvals are given without a question.
 * @param before Runs before a question, so that nothing else draws on the terminal.
 * @param listen Serves the callback for browsers that give permission.
 */
function answerOnTerminal(
  terminal: Terminal,
  isApproved: boolean,
  before: () => void,
  listen: () => Promise<unknown>,
): NonNullable<DispatchContext["onQuestion"]> {
  let last: Promise<unknown> = Promise.resolve();
  return async (question, call) => {
    if (isApproved && question.kind === "approval") return { action: "accept" };
    if (question.resumes === true) {
      await listen();
      before();
      terminal.note(cleanText(`${question.message}. Open this URL:`, MAX_TEXT));
      terminal.note(cleanText(question.url ?? "", MAX_URL));
      return { action: "accept" };
    }
    if (!terminal.canAsk) return undefined;
    // The prompts run one at a time, because each typed key goes to all open prompts.
    const answer = last.then(async () => {
      if (call.signal.aborted) return undefined;
      before();
      try {
        return await ask(question, call, terminal);
      } catch (error) {
        if (error !== LEFT) throw error;
        // In a prompt, Ctrl-C is a key and does not raise a signal.
        terminal.io.interrupt();
        return { action: "cancel" } as const;
      }
    });
    last = answer.catch(() => {});
    return await answer;
  };
}

/** The value that is thrown when the person leaves a prompt. */
const LEFT: unique symbol = Symbol("left");

async function taken<Value>(prompt: Promise<Value>): Promise<Exclude<Value, symbol>> {
  const value = await prompt;
  if (isCancel(value)) throw LEFT;
  return value as Exclude<Value, symbol>;
}

/** Shows a question, and returns the answer; `null` if the question cannot be shown completely. */
async function ask(
  { kind, message, schema, url = "", arguments: args, issues = [] }: Question,
  { tool, signal }: CallInfo,
  terminal: Terminal,
): Promise<Answer | null> {
  const options = { input: terminal.io.stdin, output: terminal.io.stderr, signal };
  const words = cleanText(message, MAX_TEXT);
  const decide = async (message: string, initialValue: boolean): Promise<Answer> => {
    const isYes = await taken(confirm({ ...options, message, initialValue }));
    return { action: isYes ? "accept" : "decline" };
  };
  for (const issue of issues) log.warn(cleanText(issue.message, MAX_TEXT), options);
  if (kind === "approval") {
    const shown = argumentsText(args, MAX_ARGUMENTS);
    if (shown !== undefined) {
      return await decide(`${words}\nRisk ${tool.risk}, with ${shown}`, false);
    }
    terminal.warn(`${words} Its arguments are too long to be shown, so you are not asked`);
    return null;
  }
  if (kind === "authorization") {
    return await decide(`${words}\nOpen ${cleanText(url, MAX_TEXT)} \u2013 done?`, true);
  }
  if (schema === undefined) return await decide(words, true);
  const isWilling = await taken(select({
    ...options,
    message: `${tool.id} asks: ${words}`,
    options: [{ value: true, label: "Answer" }, { value: false, label: "Decline" }],
  }));
  if (!isWilling) return { action: "decline" };
  const content: Record<string, unknown> = {};
  for (const field of askedFields(schema)) {
    const value = await enter(field, options);
    if (field.name === undefined) return { action: "accept", content: value };
    if (value !== undefined) setOwn(content, field.name, value);
  }
  return { action: "accept", content };
}

/** Prompts for one value; returns `undefined` if the person skips it. */
async function enter(
  { name = "Answer", isRequired, argument }: ReturnType<typeof askedFields>[number],
  prompt: { readonly input: Readable; readonly output: Writable; readonly signal: AbortSignal },
): Promise<unknown> {
  const { description, isSwitch, values, otherwise } = argument;
  const message = cleanText(description === "" ? name : `${name}: ${description}`, MAX_TEXT);
  if (isSwitch) {
    return await taken(confirm({ ...prompt, message, initialValue: otherwise === true }));
  }
  if (values.length > 0) {
    const options = values.map((value) => ({ value, label: cleanText(value, 200) }));
    const chosen = await taken(select({
      ...prompt,
      message,
      options: isRequired ? options : [...options, { value: "", label: "(nothing)" }],
      ...(otherwise === undefined ? {} : { initialValue: String(otherwise) }),
    }));
    return chosen === "" && !values.includes("") ? undefined : argument.convert(chosen);
  }
  const offered = typeof otherwise === "string" ? otherwise : JSON.stringify(otherwise) ?? "";
  const typed = await taken(text({
    ...prompt,
    message,
    // A text that the terminal cannot show completely must not be sent.
    ...(cleanText(offered, MAX_TEXT) === offered ? { initialValue: offered } : {}),
    validate: (word) => isRequired && !word ? "It is required" : undefined,
  }));
  return (typed ?? "") === "" && !isRequired ? undefined : argument.convert(typed);
}

export interface CallFlags extends Flags {
  readonly yes?: boolean;
  readonly timeout?: number;
}

/**
 * Calls a tool, with its questions and its progress on the terminal, and prints the result.
 *
 * @param print Prints the content of a result, unless it is printed as JSON.
 */
export async function callOnTerminal(
  request: { readonly name: string; readonly arguments: unknown },
  { registry, toolset, dispatch, imports, callbacks }: LoadedTools & { readonly toolset: Toolset },
  flags: CallFlags,
  terminal: Terminal,
  print: (content: unknown) => void = (content) => printContent(content, terminal),
): Promise<number> {
  const { timeout, yes } = flags;
  const meanwhile = new Meanwhile(terminal);
  const dispatcher = new ToolDispatcher(registry, {
    // A call may take longer than the default if `--timeout` allows it.
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    // A module's own approver decides first.
    ...(terminal.canAsk || yes === true ? { approve: "ask" } : {}),
    ...dispatch,
  }).withToolset(toolset);
  let listening: Promise<AsyncDisposable> | undefined;
  const settings = callbacks[0] && readSettings({ PORT: terminal.io.env["PORT"] });
  const listen = async () =>
    await (listening ??= settings && listenForCallbacks(() => callbacks, settings, terminal));
  const result = await dispatcher.dispatch(request, {
    signal: terminal.io.signal,
    timeoutMs: timeout,
    onQuestion: answerOnTerminal(terminal, yes === true, () => meanwhile.pause(), listen),
    progress: (step) => meanwhile.progress(step),
    output: (value) => meanwhile.line(value),
    metadata: (value) => {
      // Failed calls, and the calls of a program, are reported as metadata, too.
      const { type } = isObject(value) ? value : {};
      if (type !== "error" && type !== "call") meanwhile.line(value);
    },
  });
  await (await listening)?.[Symbol.asyncDispose]();
  meanwhile.pause();
  if (terminal.isJson) terminal.printJson(result);
  else if (result.ok) print(result.content);
  else {
    printFailure(result, flags, terminal);
    const isUnsent = unsentCalls(imports).some(({ tool }) => tool === request.name);
    if (isUnsent) terminal.note(`  ${BASE_URL_ADVICE}`);
  }
  return result.ok ? EXIT.ok : EXIT_CODES[result.error.code];
}

export function printContent(content: unknown, terminal: Terminal): void {
  if (typeof content === "string") terminal.printForeign(content);
  else if (content !== undefined) terminal.printJson(content);
}

/** @param words The words after the tool's id: its arguments. */
export async function call(
  id: string,
  words: readonly string[],
  flags: CallFlags,
  terminal: Terminal,
): Promise<number> {
  const { io } = terminal;
  const hasSource = flags.from !== undefined || !!io.env["PLUE_TOOLS"];
  if (!hasSource && words.some((word) => /^(?:--from(?:=|$)|-f$)/.test(word))) {
    throw usageError(`Cannot call "${id}": put --from before the tool's id`);
  }
  await using loaded = await toolsFrom([], flags, io);
  const { registry, toolset } = loaded;
  const tool = findTool(registry, toolset, id);
  if (words.includes("--help") || words.includes("-h")) {
    terminal.print(toolText(terminal, tool));
    return EXIT.ok;
  }
  const args = await readArguments(tool, words, (path) => readInput(path, io));
  await enterMissing(tool, args, terminal);
  return await callOnTerminal({ name: tool.id, arguments: args }, loaded, flags, terminal);
}

/** Prompts for missing required arguments, if a person sees the output. */
async function enterMissing(
  { parameters }: Tool,
  args: Record<string, unknown>,
  { canAsk, isJson, io }: Terminal,
): Promise<void> {
  if (!canAsk || isJson || io.stdout.isTTY !== true) return;
  const prompt = { input: io.stdin, output: io.stderr, signal: io.signal };
  try {
    for (const field of askedFields(parameters)) {
      const { name, isRequired } = field;
      if (name === undefined || !isRequired || Object.hasOwn(args, name)) continue;
      setOwn(args, name, await enter(field, prompt));
    }
  } catch (error) {
    if (error === LEFT) io.interrupt();
    throw error;
  }
}

function printFailure(
  { error: { code, message, issues = [] } }: ToolFailure,
  { yes }: CallFlags,
  terminal: Terminal,
): void {
  const { io: { stderr } } = terminal;
  // The message repeats the issues. Here each issue is on a line with its flag.
  const [head = ""] = message.split(`: ${issues[0]?.message}`);
  terminal.note(`${terminal.paint("red", code, stderr)}: ${cleanText(head, 10_000)}`);
  for (const { path, message: wrong } of issues) {
    const flag = `--${path.slice(1).replaceAll("/", ".")}`;
    const isArgument = code === "invalid_arguments" && path !== "" && wrong.startsWith(path);
    terminal.note(`  ${cleanText(isArgument ? flag + wrong.slice(path.length) : wrong, 1_000)}`);
  }
  const onTerminal = "Call it on a terminal, where you are asked";
  // The failure of a program lists the calls that failed in it.
  const needsApproval = code === "approval_required" ||
    /^\S+ \((approval_required|input_unavailable)\): /m.test(message);
  if (needsApproval && yes !== true) {
    terminal.note(terminal.canAsk ? "  Add --yes" : `  ${onTerminal}, or add --yes`);
  } else if (code.startsWith("input_")) terminal.note(`  ${onTerminal}`);
  if (stderr.isTTY === true && code !== "invalid_arguments") {
    terminal.note(terminal.paint("dim", `  ${helpUrl(code)}`, stderr));
  }
}

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

  line(value: unknown): void {
    this.pause();
    const text = typeof value === "string" ? value : JSON.stringify(value);
    this.#terminal.note(cleanText(text, 100_000).replace(/\n$/, ""));
  }

  /** Removes the bar until the next step of the progress. */
  pause(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}
