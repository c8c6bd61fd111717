/**
 * Asks the person at the terminal what a call wants to know.
 *
 * @module
 */

import { confirm, isCancel, log, select, text } from "@clack/prompts";
import type { CallInfo, DispatchContext } from "../execute/mod.ts";
import { type Answer, argumentsText, cleanText, type Question, setOwn } from "../tool/mod.ts";
import { type AskedField, askedFields } from "./arguments.ts";
import type { Terminal } from "./terminal.ts";

/** What is shown of foreign text, in characters. */
const MAX_TEXT = 2_000;
/** Longer arguments are not asked about: no part of them is left out. In characters. */
const MAX_ARGUMENTS = 20_000;

/** Answers questions; the function of a call's context. */
export type AnswerQuestion = NonNullable<DispatchContext["onQuestion"]>;

/**
 * Makes the function that answers a call's questions.
 *
 * @param isApproved Whether `--yes` was given: approvals are not asked for then.
 * @param before Runs before something is asked: nothing else may draw then.
 * @returns A function that answers `undefined` where there is nobody to ask.
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

  /** Asks for one value; `undefined` if it was left out. */
  async #value(field: AskedField): Promise<unknown> {
    const { name = "Answer", description, isSwitch, isRequired, values, otherwise } = field;
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
      return chosen === "" && !values.includes("") ? undefined : field.convert(chosen);
    }
    const typed = await this.#taken(text({
      ...this.#options,
      message,
      ...(otherwise === undefined ? {} : {
        initialValue: typeof otherwise === "string" ? otherwise : JSON.stringify(otherwise),
      }),
      validate: (word) => isRequired && !word ? "It is required" : undefined,
    }));
    return (typed ?? "") === "" && !isRequired ? undefined : field.convert(typed);
  }

  async #taken<Value>(asked: Promise<Value>): Promise<Exclude<Value, symbol>> {
    const value = await asked;
    if (isCancel(value)) throw LEFT;
    return value as Exclude<Value, symbol>;
  }
}
