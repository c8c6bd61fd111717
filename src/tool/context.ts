/**
 * What a tool is given beside its arguments.
 *
 * @module
 */

import type { Answer, QuestionFields } from "./result.ts";

/** Dependencies that tools are handed, by name: of the registry, or of one call. */
export interface Services {
  readonly [name: string]: unknown;
}

/** The transaction that a call runs in. The transaction manager decides what else it has. */
export interface Transaction {
  /** Names the transaction in logs. */
  readonly id: string;
}

/**
 * What a tool is given beside its arguments, for one call.
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
  /** The conversation that the call belongs to, if the caller said. */
  readonly sessionId: string | undefined;
  /** The model's message that asked for the call, if the caller said. */
  readonly messageId: string | undefined;
  /** Names this call; unique unless the caller chose otherwise. */
  readonly callId: string;
  /** Who calls, if the caller said. Over HTTP and MCP it is the one that `authorize` named. */
  readonly principal: string | undefined;
  /** Aborts when the caller gives up or the time is over. Hand it to everything that waits. */
  readonly signal: AbortSignal;
  /** The dependencies that the registry was made with, and over them those of this call. */
  readonly services: Available;
  /** What the host gave this call, checked against the tool's `context` schema. */
  readonly context: HostContext;
  /** This tool's configuration, checked against its `config` schema. */
  readonly config: Config;
  /** What the tool's `init` returned. */
  readonly state: State;
  /** The transaction, for a tool that requires one. */
  readonly transaction: Transaction | undefined;
  /** Sends a JSON value to the caller at once. */
  metadata(value: unknown): void;
  /** Says how far the call has come; `total` and `message` if known. */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Asks whoever called, and waits for the answer. Where it cannot be given now, the call ends as
   * suspended: this rejects, cleanups run, a transaction is rolled back. When the answer is there,
   * `execute` runs again from its beginning, and this gives the answer. An answer whose content does
   * not fit is asked for again.
   *
   * A call asks a question and takes a step at most 64 times together.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
   *
   * const rm = defineTool({
   *   name: "rm",
   *   description: "Deletes a file.",
   *   parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
   *   async execute({ path }, context) {
   *     const { action } = await context.ask("sure", { kind: "approval", message: `Delete ${path}?` });
   *     return action === "accept" ? "deleted" : "kept";
   *   },
   * });
   * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [rm] }));
   *
   * const result = await dispatcher.dispatch({ name: "rm", arguments: { path: "a.txt" } }, {
   *   onQuestion: ({ message }) => ({ action: message === "Delete a.txt?" ? "accept" : "decline" }),
   * });
   * assert.equal(result.ok && result.content, "deleted");
   * ```
   *
   * @param key Names the question: 1 to 64 letters, digits, `_`, `.` or `-`, once in a call.
   * @returns What the person did. Rejects with an error of the code `input_unavailable` where nobody
   * can be asked; a tool may catch that and do without.
   */
  ask<Content = unknown>(key: string, question: QuestionFields): Promise<Answer<Content>>;
  /**
   * Does something that must not be done again when the call continues. Its result, which is JSON,
   * is kept with the call, and given when `execute` runs again. What throws is not kept. In a
   * transaction it is refused: what the tool does there is rolled back when the call waits.
   *
   * @param key Names the step, as that of a question does.
   * @returns A copy of the result.
   */
  step<Result>(key: string, work: () => Result | Promise<Result>): Promise<Result>;
  /** Runs `cleanup` however the call ends; the last one deferred runs first. */
  defer(cleanup: () => void | Promise<void>): void;
  /** Throws the signal's reason if the call has been aborted. */
  throwIfAborted(): void;
}

/** What a tool's `init` is given. */
export interface ToolInitContext<Config = unknown> {
  readonly services: Services;
  readonly config: Config;
}

/** What a tool's `isAvailable` function is given. */
export interface ToolAvailabilityQuery {
  readonly services: Services;
  readonly config: unknown;
}
