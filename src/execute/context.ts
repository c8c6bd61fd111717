/**
 * The context that a tool is given, and the view of a call that hooks, rules and approvers get.
 *
 * @module
 */

import {
  JsonReader,
  type Services,
  STOPPED,
  type Tool,
  type ToolContext,
  type Transaction,
} from "../tool/mod.ts";
import type { Call } from "./call.ts";
import type { CallInfo } from "./hooks.ts";

/**
 * The context of one call. What a tool does not ask for is not made; and since every member is
 * looked up through a getter, a tool may take them apart: `execute(params, { signal, progress })`.
 */
export class CallContext implements ToolContext<never, never> {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
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

  get signal(): AbortSignal {
    return this.#call.deadline.signal;
  }

  get services(): Services {
    return this.#call.runtime.services;
  }

  // `never`: the registry checked the configuration and kept the state for this very tool, whose
  // types are not known here.
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
    return (value) => this.#call.sender.metadata(value);
  }

  get progress(): (done: number, total?: number, message?: string) => void {
    return (done, total, message) => this.#call.sender.progress(done, total, message);
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
  readonly #call: Call;
  readonly #args: unknown;
  #shown: unknown;

  constructor(call: Call) {
    const { sessionId, messageId, principal } = call.options;
    this.tool = call.tool;
    this.callId = call.callId;
    this.sessionId = sessionId;
    this.messageId = messageId;
    this.principal = principal;
    this.#args = call.args;
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#call.deadline.signal;
  }

  /** A frozen copy: whoever is asked about a call cannot change what was validated. */
  get arguments(): unknown {
    return this.#shown ??= frozenCopy(this.#args);
  }
}

/** What a library's schema made of the arguments need not be JSON: that is shown as it is. */
function frozenCopy(args: unknown): unknown {
  const copy = new JsonReader({ freeze: true }).read(args);
  return copy === STOPPED ? args : copy;
}
