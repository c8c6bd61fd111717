/**
 * The words of a call: what a model asks for, and what its host adds.
 *
 * @module
 */

import type { OutputOverflow } from "../tool/mod.ts";

/** One call, as a model asks for it. */
export interface ToolCall {
  /** The tool's id. Names from a provider are decoded first. */
  readonly name: string;
  /**
   * The arguments: a JSON string, or the value, which the tool gets a copy of. Absent, `null` and
   * the empty string stand for no arguments, since models send all three.
   */
  readonly arguments?: unknown;
  /** Names the call. Absent: the dispatcher names it. */
  readonly callId?: string | undefined;
}

/** How far a call has come. */
export interface ToolProgress {
  readonly done: number;
  readonly total?: number;
  readonly message?: string;
}

/** What a call's host adds to it. Everything is optional. */
export interface DispatchContext {
  /** The conversation that the call belongs to. */
  readonly sessionId?: string | undefined;
  /** The model's message that asked for the call. */
  readonly messageId?: string | undefined;
  /** Who calls. Hooks and approvers are told, and idempotency keys are kept apart by it. */
  readonly principal?: string | undefined;
  /** Aborts the call. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long this call may take, in milliseconds. The lowest of this, the tool's and the
   * dispatcher's limit holds; 0 or less means that the time is over already.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * A later call with the same key, tool, principal and session gets this call's result, and the
   * tool does not run again. 1 to 256 characters. A host that serves several callers must name the
   * principal or the session, or they share their keys, and with them results.
   */
  readonly idempotencyKey?: string | undefined;
  /** How large the result may be, in bytes of JSON. Can only lower the dispatcher's limit. */
  readonly maxOutputBytes?: number | undefined;
  /** What is done with a result that is larger. Absent: what the dispatcher was told. */
  readonly outputOverflow?: OutputOverflow | undefined;
  /** Is given what the tool sends with `context.metadata`: a frozen copy. */
  metadata?(value: unknown): void;
  /** Is told how far the tool has come. */
  progress?(progress: ToolProgress): void;
  /**
   * Is given what a generator yields: a frozen copy. The tool goes on when the promise that it
   * returns, if any, has settled.
   */
  output?(value: unknown): void | Promise<void>;
}
