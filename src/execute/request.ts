/**
 * The fields of a call, as a model makes it, and of its context, which its host adds.
 *
 * @module
 */

import type { Answer, Answers, OutputOverflow, Question, Services } from "../tool/mod.ts";
import type { CallInfo, CallTrace } from "./ports.ts";

/** One call, as a model makes it, or as `decodeCalls` returns it. Other fields are ignored. */
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
  /**
   * Undoes what an export changed in the arguments. It is asked for arguments that were text which
   * is not JSON, once they are repaired: those that could be read are decoded before.
   */
  readonly decode?: ((args: unknown) => unknown) | undefined;
}

/**
 * A call that goes on: the ticket that came with its questions, and the answers. It is dispatched in
 * the place of a call.
 */
export interface ResumedCall {
  /** What the suspended call gave. */
  readonly ticket: string;
  /** By the keys of the questions. A question without an answer is asked again. */
  readonly answers?: Answers;
  /** The tool's id, where the caller repeats its call. It must be that of the ticket. */
  readonly name?: string;
  /** The arguments, where the caller repeats its call. They must be those of the ticket. */
  readonly arguments?: unknown;
  /** The call's name, where the caller repeats it. It must be that of the ticket. */
  readonly callId?: string | undefined;
}

/** How far a call has come. */
export interface ToolProgress {
  readonly done: number;
  readonly total?: number;
  readonly message?: string;
}

/** What a call's host adds to it. Everything is optional. Other fields are ignored. */
export interface DispatchContext {
  /** The conversation that the call belongs to. */
  readonly sessionId?: string | undefined;
  /** The model's message that asked for the call. */
  readonly messageId?: string | undefined;
  /**
   * Who calls. The tool, hooks and approvers are told, and idempotency keys are kept apart by it.
   */
  readonly principal?: string | undefined;
  /**
   * Dependencies for this call only, such as the document that it is about. They are laid over the
   * registry's: one of the same name takes its place. A tool's `init` and `isAvailable` do not see
   * them.
   */
  readonly services?: Services | undefined;
  /**
   * What tools that declare a `context` are given, such as `{ tenant: "acme" }`. One object may hold
   * what several tools want: each schema says what its tool is given. It is the host's word: never
   * take it from a model or a client.
   */
  readonly context?: unknown;
  /** The trace that the call belongs to, for a dispatcher with `telemetry`. */
  readonly trace?: CallTrace | undefined;
  /**
   * Aborts the call. A function gives the signal when the call first waits: a call that ends at once
   * does not pay for it.
   */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined;
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
  /** What happens to a text that is larger. By default the tool's choice, else the dispatcher's. */
  readonly outputOverflow?: OutputOverflow | undefined;
  /**
   * Is given what the tool sends with `context.metadata`: a frozen copy. Of a call that fails it is
   * told last `{ type: "error", tool, error, message }`, with `issues` where there are some: `tool`
   * is the name in the call, and `error` the failure's code.
   */
  metadata?(value: unknown): void;
  /** Receives how far the tool has come. */
  progress?(progress: ToolProgress): void;
  /**
   * Asks the one who called: a prompt in a terminal, a dialog. The call waits for the answer, which
   * does not count against its timeout. `undefined` says that this cannot be asked now: the call is
   * then suspended, as without this function. `null` says that this cannot be asked at all: the tool
   * goes on without an answer, or the call fails with `input_unavailable`. The signal of the call
   * aborts when the answer is no longer wanted.
   */
  onQuestion?(
    question: Question,
    call: CallInfo,
  ): Answer | undefined | null | Promise<Answer | undefined | null>;
  /**
   * Receives what a generator yields: a frozen copy, and how large it is as JSON, in bytes, at most.
   * The tool continues when the promise that this returns, if any, has settled.
   */
  output?(value: unknown, bytes: number): void | Promise<void>;
}
