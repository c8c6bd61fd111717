/** The data of a call: the call of the model, the context of the host, and tickets. */

import type {
  Answer,
  Answers,
  ArgumentRepair,
  OutputOverflow,
  Question,
  Services,
  SuspendedCall,
  Tool,
  ToolFailure,
} from "../tool/mod.ts";
import type { CallInfo, CallTrace } from "./ports.ts";

/** One call of a model, such as `decodeCalls` returns. Other fields are ignored. */
export interface ToolCall {
  /** The tool's id. `decodeCalls` converts the names of a provider to ids. */
  readonly name: string;
  /**
   * The arguments: a JSON string, or a value, which is copied. A missing field, `null` and the
   * empty string mean no arguments, since models send all three.
   */
  readonly arguments?: unknown;
  /** The id of the call. By default the dispatcher creates one. */
  readonly callId?: string | undefined;
  /**
   * Reverts the changes of an export in the arguments. Called after the repair of arguments that
   * were not JSON: `decodeCalls` could not decode these.
   */
  readonly decode?: ((args: unknown) => unknown) | undefined;
}

/** The ticket of a suspended call, and the answers. Passed to `dispatch` instead of a call. */
export interface ResumedCall {
  /** The ticket of the suspended call. */
  readonly ticket: string;
  /** The answers by the keys of their questions. Questions without answers are repeated. */
  readonly answers?: Answers;
  /** The tool's id, if the call is sent with its ticket. It must match the ticket. */
  readonly name?: string;
  /** The arguments, if the call is sent with its ticket. They must match the ticket. */
  readonly arguments?: unknown;
  /** The call's id, if the call is sent with its ticket. It must match the ticket. */
  readonly callId?: string | undefined;
}

/** The progress of a call. */
export interface ToolProgress {
  readonly done: number;
  readonly total?: number;
  readonly message?: string;
}

/** The host's additions to a call. All fields are optional. Other fields are ignored. */
export interface DispatchContext {
  /** The conversation that the call belongs to. */
  readonly sessionId?: string | undefined;
  /** The model's message that contains the call. */
  readonly messageId?: string | undefined;
  /** The id of the caller, for the tool, hooks and approvers, and for its own idempotency keys. */
  readonly principal?: string | undefined;
  /**
   * Services for this call only, such as its document. They override the registry's services of the
   * same name. A tool's `init` and `isAvailable` do not receive them.
   */
  readonly services?: Services | undefined;
  /**
   * The context for tools that declare one, such as `{ tenant: "acme" }`. One object may serve
   * several tools: each schema selects its part. The host must create it: never take it from a
   * model or a client.
   */
  readonly context?: unknown;
  /** The trace that the call belongs to, for a dispatcher with `telemetry`. */
  readonly trace?: CallTrace | undefined;
  /**
   * Aborts the call. A function is called when the call first waits, and returns the signal. So a
   * synchronous call needs no signal.
   */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined;
  /**
   * The timeout of this call, in milliseconds. It can only shorten the timeout of the tool or the
   * dispatcher. 0 or less means that the time has already expired.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * A later call with the same key, tool, principal and session receives this call's result, and
   * the tool does not run again. A key has 1 to 256 characters. A host that serves several callers
   * must set `principal` or `sessionId`: otherwise all callers share their keys and results.
   */
  readonly idempotencyKey?: string | undefined;
  /** The maximum size of the result, in bytes of JSON. It can only lower the dispatcher's limit. */
  readonly maxOutputBytes?: number | undefined;
  /** The handling of a text above that limit; by default as the tool or the dispatcher sets it. */
  readonly outputOverflow?: OutputOverflow | undefined;
  /**
   * Receives a frozen copy of each value that the tool sends with `context.metadata`. For a failed
   * call the last value is `{ type: "error", tool, error, message }`, with `issues` if there are
   * any: `tool` is the name in the call, and `error` the failure's code.
   */
  metadata?(value: unknown): void;
  /** Receives the tool's progress. */
  progress?(progress: ToolProgress): void;
  /**
   * Asks the caller, for example by a prompt in a terminal or a dialog. The wait for the answer
   * does not count against the timeout. Return `undefined` if the caller cannot answer now: the
   * call is then suspended, as without this function. Return `null` if the caller can never answer:
   * the tool continues without an answer, or the call fails with `input_unavailable`. The signal of
   * the call aborts when the answer is no longer needed.
   */
  onQuestion?(
    question: Question,
    call: CallInfo,
  ): Answer | undefined | null | Promise<Answer | undefined | null>;
  /**
   * Receives a frozen copy of each value that a generator yields, and an upper bound of its size as
   * JSON, in bytes. If this returns a promise, the tool continues when the promise settles.
   */
  output?(value: unknown, bytes: number): void | Promise<void>;
}

/** The stored data of a question or a step. JSON. */
export interface KeptAnswer {
  readonly fingerprint?: string;
  readonly answer?: Answer;
  readonly result?: unknown;
}

/** The answers and step results of a call, by key: at most 64 keys and 64 kB of JSON. */
export interface CallMemory {
  readonly [key: string]: KeptAnswer;
}

/** Repaired arguments. A resumed call is not repaired again. */
export interface RepairedArguments {
  /** The repaired arguments, as JSON. */
  readonly arguments: unknown;
  readonly repairs: readonly ArgumentRepair[];
}

/** A suspended call. */
export interface WaitingCall {
  readonly tool: Tool;
  readonly callId: string;
  readonly context: DispatchContext;
  /** The caller's arguments. JSON. */
  readonly arguments: unknown;
  readonly repaired?: RepairedArguments | undefined;
  readonly questions: readonly Question[];
  readonly memory: CallMemory;
  /** The current time, in milliseconds since 1970. */
  readonly now: number;
}

/** A ticket to resume a call. */
export interface ReturnedTicket extends Pick<WaitingCall, "now"> {
  readonly request: ResumedCall;
  readonly principal: string | undefined;
  /** The host's context. It must equal the context of the suspended call. */
  readonly context?: unknown;
  readonly findTool: (id: string) => Tool | undefined;
  /** The run that resumes the call, as JSON. Later attempts of the run can use the ticket again. */
  readonly run?: unknown;
}

/** The name of the service whose value is the {@linkcode ReturnedTicket.run} of a resumed call. */
export const TICKET_RUN = "plue:run";

/** The data of a resumed call. */
export interface Resumption {
  readonly call: ToolCall;
  readonly repaired?: RepairedArguments | undefined;
  readonly context: Pick<DispatchContext, "sessionId" | "messageId" | "idempotencyKey">;
  readonly memory: CallMemory;
  /** Makes the ticket valid again. Called if the call ends before its tool runs. */
  release(): Promise<void>;
}

/**
 * Creates and reads tickets of suspended calls. `sealedTickets` and `storedTickets` of
 * `@plue/tools/calls` return this interface.
 */
export interface CallTickets {
  /** Returns the result of a suspended call with its ticket, or the failure to suspend it. */
  suspend(call: WaitingCall): Promise<SuspendedCall | ToolFailure>;
  /**
   * Returns the data that resumes the call of a ticket, or the failure of an invalid ticket. The
   * promise rejects if the ticket cannot be looked up now.
   */
  resume(ticket: ReturnedTicket): Promise<Resumption | ToolFailure>;
}
