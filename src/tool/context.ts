/** The context of a tool: its second argument. */

import type { Answer, QuestionFields } from "./result.ts";

/** Dependencies of tools by name, from the registry or one call. */
export interface Services {
  readonly [name: string]: unknown;
}

/**
 * A credential of the caller, for one call. Its JSON is its name, so a result that contains the
 * object does not contain the token.
 */
export interface ToolCredential {
  /** The name in the tool's `credentials`. */
  readonly name: string;
  /** The secret. Not enumerable. */
  readonly token: string;
  /** The value of the header `authorization`: `Bearer …`. Not enumerable. */
  readonly authorization: string;
  /** The scopes that the provider has granted, if it names them. */
  readonly scopes: readonly string[] | undefined;
  /** The expiry, in milliseconds since 1970, if it is known. */
  readonly expiresAt: number | undefined;
  /** Reports that a server has rejected the token (401). The next call gets another one. */
  reject(): Promise<void>;
}

/** The transaction that a call runs in. The transaction manager may add fields. */
export interface Transaction {
  /** Names the transaction in logs. */
  readonly id: string;
}

/**
 * The second argument of a tool's `execute`, for one call.
 *
 * @example Services with a type
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, type ToolContext, ToolDispatcher, ToolRegistry } from "@plue/tools";
 *
 * type Clock = { readonly clock: { readonly now: () => string } };
 * const now = defineTool({
 *   name: "now",
 *   description: "Tells the time.",
 *   execute: (_, { services }: ToolContext<unknown, undefined, unknown, Clock>) =>
 *     services.clock.now(),
 * });
 * const services: Clock = { clock: { now: () => "12:00" } };
 * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [now], services }));
 * const result = await dispatcher.dispatch({ name: "now" });
 * assert.equal(result.ok && result.content, "12:00");
 * ```
 */
export interface ToolContext<
  Config = unknown,
  State = unknown,
  HostContext = unknown,
  Available = Services,
> {
  /** The conversation that the call belongs to, if known. */
  readonly sessionId: string | undefined;
  /** The model's message that contains the call, if known. */
  readonly messageId: string | undefined;
  /** The id of this call; unique unless the caller chose it. */
  readonly callId: string;
  /** The caller, if known. Over HTTP and MCP it comes from `authorize`. */
  readonly principal: string | undefined;
  /** Aborts when the caller aborts the call, or on a timeout. Pass it to all asynchronous work. */
  readonly signal: AbortSignal;
  /** The services of the registry, overridden by the services of this call. */
  readonly services: Available;
  /** The host's context of this call, validated with the tool's `context` schema. */
  readonly context: HostContext;
  /** This tool's configuration, checked against its `config` schema. */
  readonly config: Config;
  /** The result of the tool's `init`. */
  readonly state: State;
  /** The transaction, for a tool that requires one. */
  readonly transaction: Transaction | undefined;
  /** Sends a JSON value to the caller immediately. */
  metadata(value: unknown): void;
  /** Reports the progress of the call, with `total` and `message` if known. */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Asks the caller, and waits for the answer. If the caller cannot answer now, the call is
   * suspended: `ask` rejects, cleanups run, and a transaction is rolled back. After the answer has
   * arrived, `execute` runs again from its beginning, and `ask` returns the answer. After an
   * invalid answer the question is repeated.
   *
   * A call has at most 64 questions and steps together.
   *
   * @param key The key of the question: 1 to 64 letters, digits, `_`, `.` or `-`, unique in the
   * call.
   * @returns The person's answer. Rejects with an error of the code `input_unavailable` if there is
   * no way to ask; a tool may catch it and continue without an answer.
   */
  ask<Content = unknown>(key: string, question: QuestionFields): Promise<Answer<Content>>;
  /**
   * Runs work that must not be repeated when the call resumes. The result, which is JSON, is stored
   * with the call, and returned when `execute` runs again. An error is not stored. A step is
   * rejected in a transaction, because suspending the call rolls the transaction back.
   *
   * @param key The key of the step, under the same rule as the key of a question.
   * @returns A copy of the result.
   */
  step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result>;
  /**
   * Returns a credential of the caller that the tool declares in `credentials`. The call has
   * fetched it after all decisions, immediately before `execute`.
   *
   * @throws {TypeError} If the tool does not declare the name, or `execute` has not begun.
   */
  credential(name: string): ToolCredential;
  /** Runs `cleanup` at the end of the call in every case; the last one deferred runs first. */
  defer(cleanup: () => void | Promise<void>): void;
  /** Throws the signal's reason if the call has been aborted. */
  throwIfAborted(): void;
}

/** The argument of a tool's `init`. */
export interface ToolInitContext<Config = unknown> {
  readonly services: Services;
  readonly config: Config;
}

/** The argument of a tool's `isAvailable` function. */
export interface ToolAvailabilityQuery {
  readonly services: Services;
  readonly config: unknown;
}
