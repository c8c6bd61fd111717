/**
 * Hooks stand around a call: they may change its arguments, answer in the tool's place, refuse,
 * or change the result.
 *
 * @module
 */

import type { Tool, ToolResult } from "../tool/mod.ts";

/** The call that a hook, a rule or an approver is asked about. */
export interface CallInfo {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly principal: string | undefined;
  /** Aborts when the call does. */
  readonly signal: AbortSignal;
  /**
   * The arguments, as a frozen copy. In `before` they are parsed and not yet validated; later they are what the
   * tool gets. `undefined` where a call ended before they were parsed.
   */
  readonly arguments: unknown;
}

/** What a `before` hook answers. Nothing means: go on. */
export type BeforeAnswer =
  | void
  /** Go on with these arguments instead. They are validated as any others. */
  | { readonly arguments: unknown }
  /** Do not run the tool: this is the result. Its content is validated as a tool's would be. */
  | { readonly result: ToolResult }
  /** Do not run the tool: the call fails with `denied` and this sentence. */
  | { readonly refuse: string };

/**
 * Stands around every call of a tool in the toolset.
 *
 * `before` runs after the arguments were parsed and before they are validated; the hooks run in
 * the order given, and the first that answers with a result or refuses ends that.
 *
 * `after` runs last, when the transaction is closed and the cleanups have run, with every result
 * of a known tool, also of a call that was refused, but not with a result that is replayed for an
 * idempotency key; the hooks run in reverse order. What it returns, if anything, is the result instead; its content is validated as a tool's would be.
 *
 * A hook that throws, or answers something else, refuses: the call fails with `denied`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, type ToolHooks, ToolRegistry } from "@plue/tools";
 *
 * const log: string[] = [];
 * const audit: ToolHooks = {
 *   name: "audit",
 *   before: ({ principal }) => principal === undefined ? { refuse: "Who are you?" } : undefined,
 *   after: ({ tool }, result) => void log.push(`${tool.id}: ${result.ok}`),
 * };
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { hooks: audit });
 *
 * await dispatcher.dispatch({ name: "ping" });
 * await dispatcher.dispatch({ name: "ping" }, { principal: "ann" });
 * assert.deepEqual(log, ["ping: false", "ping: true"]);
 * ```
 */
export interface ToolHooks {
  /** Names the hook in messages. */
  readonly name?: string;
  before?(call: CallInfo): BeforeAnswer | Promise<BeforeAnswer>;
  after?(
    call: CallInfo,
    result: ToolResult,
  ): ToolResult | void | Promise<ToolResult | void>;
}
