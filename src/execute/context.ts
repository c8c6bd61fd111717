/**
 * The context that a tool is given, and the view of a call that hooks, rules and approvers get.
 *
 * @module
 */

import type {
  Answer,
  QuestionFields,
  Services,
  Tool,
  ToolContext,
  Transaction,
} from "../tool/mod.ts";
import type { ToolRuntime } from "../registry/mod.ts";
import type { Toolset } from "../select/mod.ts";
import type { Deadline } from "./deadline.ts";
import { type SendingCall, sendMetadata, sendProgress } from "./events.ts";
import { frozenCopy } from "./json_value.ts";
import type { CallInfo } from "./ports.ts";

/** What asks for a tool, and takes the steps that it must not repeat. */
export interface Asking {
  ask(key: string, question: QuestionFields): Promise<Answer>;
  step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result>;
}

/** What a context and a view show of a call. */
export interface CallSource extends SendingCall {
  readonly tool: Tool;
  readonly toolset: Toolset;
  readonly callId: string;
  readonly args: unknown;
  readonly hostContext: unknown;
  readonly resumed: boolean;
  readonly services: Services;
  readonly runtime: ToolRuntime;
  readonly transaction: Transaction | undefined;
  readonly deadline: Deadline;
  /** What asks the caller. It is made when the tool first wants it. */
  readonly asking: Asking;
  defer(cleanup: () => void | Promise<void>): void;
}

/**
 * The context of one call. What a tool does not ask for is not made; and since every member is
 * looked up through a getter, a tool may take them apart: `execute(params, { signal, progress })`.
 */
export class CallContext implements ToolContext<never, never, never> {
  readonly #call: CallSource;

  constructor(call: CallSource) {
    this.#call = call;
  }

  /** The toolset that the call was resolved against: for plue's own tools, and not shown to others. */
  static toolsetOf(context: object): Toolset | undefined {
    return #call in context ? context.#call.toolset : undefined;
  }

  /** How long the call of a context may still take, in milliseconds: for plue's own tools. */
  static remainingMsOf(context: object): number | undefined {
    return #call in context ? context.#call.deadline.remainingMs : undefined;
  }

  get sessionId(): string | undefined {
    return this.#call.options.sessionId;
  }

  get messageId(): string | undefined {
    return this.#call.options.messageId;
  }

  get callId(): string {
    return this.#call.callId;
  }

  get principal(): string | undefined {
    return this.#call.options.principal;
  }

  get signal(): AbortSignal {
    return this.#call.deadline.signal;
  }

  get services(): Services {
    return this.#call.services;
  }

  // `never`: the types of these are not known here. Each has been checked.
  get context(): never {
    return this.#call.hostContext as never;
  }

  get config(): never {
    return this.#call.runtime.config as never;
  }

  get state(): never {
    return this.#call.runtime.state as never;
  }

  get transaction(): Transaction | undefined {
    return this.#call.transaction;
  }

  get metadata(): (value: unknown) => void {
    return (value) => sendMetadata(this.#call, value);
  }

  get progress(): (done: number, total?: number, message?: string) => void {
    return (done, total, message) => sendProgress(this.#call, done, total, message);
  }

  get ask(): <Content>(key: string, question: QuestionFields) => Promise<Answer<Content>> {
    // The content is what the tool's own schema says.
    return (key, question) => this.#call.asking.ask(key, question) as Promise<Answer<never>>;
  }

  get step(): <Result>(key: string, work: () => Result | Promise<Result>) => Promise<Result> {
    return (key, work) => this.#call.asking.step(key, work);
  }

  get defer(): (cleanup: () => void | Promise<void>) => void {
    return (cleanup) => this.#call.defer(cleanup);
  }

  get throwIfAborted(): () => void {
    return () => this.#call.deadline.throwIfAborted();
  }
}

/** A call as hooks, rules and approvers see it. */
export class CallView implements CallInfo {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly principal: string | undefined;
  readonly context: unknown;
  readonly resumed: boolean;
  readonly #call: CallSource;
  readonly #args: unknown;
  #shown: unknown;

  constructor(call: CallSource) {
    const { sessionId, messageId, principal } = call.options;
    this.tool = call.tool;
    this.callId = call.callId;
    this.sessionId = sessionId;
    this.messageId = messageId;
    this.principal = principal;
    this.context = call.hostContext;
    this.resumed = call.resumed;
    this.#args = call.args;
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#call.deadline.signal;
  }

  get remainingMs(): number {
    return this.#call.deadline.remainingMs;
  }

  /** A frozen copy, so that a hook cannot change what was validated. */
  get arguments(): unknown {
    // What a library's schema made of the arguments may not be JSON, and is then shown as it is.
    return this.#shown ??= frozenCopy(this.#args) ?? this.#args;
  }
}
