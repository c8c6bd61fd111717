/** The frames that the tools side sends to libplue, with the numbers of `plue.h` for failures. */

import {
  attemptOr,
  type FailureCode,
  type ToolFailure,
  type ToolResult,
  type ToolSuccess,
} from "../../tool/mod.ts";
import { FLAG, FrameWriter, REPLY, type ReplyType, STATUS_SHIFT } from "./frames.ts";

export type BridgeFailureCode =
  | "invalid_argument"
  | "unavailable"
  | "runtime_unavailable"
  | "output_too_large"
  | "unknown_task";

/** The numbers of `plue.h`, such as `PLUE_UNKNOWN_TOOL`. */
export const STATUS: { readonly [Code in FailureCode | BridgeFailureCode]: number } = {
  unknown_tool: 1,
  unavailable: 2,
  denied: 3,
  not_executable: 4,
  invalid_arguments: 5,
  invalid_result: 6,
  approval_required: 7,
  aborted: 8,
  timeout: 9,
  transaction_failed: 10,
  output_too_large: 11,
  overloaded: 12,
  threw: 13,
  input_required: 14,
  input_unavailable: 15,
  ticket_refused: 16,
  invalid_argument: 64,
  runtime_unavailable: 66,
  unknown_task: 71,
};

/** The code of a status number; `threw` for an unknown number. */
export function codeOf(status: number): string {
  return Object.entries(STATUS).find(([, number]) => number === status)?.[0] ?? "threw";
}

/** The properties of a result besides its content: `PLUE_RESULT_BLOCKS` and so on. */
export function flagsOf({ blocks, truncated, replayed, repaired }: ToolSuccess): number {
  return (blocks ? 1 : 0) | (truncated ? 2 : 0) | (replayed ? 4 : 0) | (repaired ? 8 : 0);
}

interface Failure {
  readonly error: FailureCode | BridgeFailureCode;
  readonly message: string;
  readonly issues?: ToolFailure["error"]["issues"] | undefined;
  readonly questions?: ToolFailure["questions"] | undefined;
  readonly ticket?: string | undefined;
  readonly repaired?: ToolFailure["repaired"] | undefined;
}

/** More bytes are sent before the turn ends, because a tool that never waits could fill the memory. */
const MAX_WAITING_BYTES = 256 * 1024;

/** Writes replies, and sends the replies of one turn of the event loop together. */
export class Replies {
  readonly #writer: FrameWriter = new FrameWriter();
  readonly #send: (frames: Uint8Array) => void;
  #flushing = false;

  /** @param send Receives whole frames. They are valid until it returns. */
  constructor(send: (frames: Uint8Array) => void) {
    this.#send = send;
  }

  /** Sends a frame whose payload is text. Returns `false` if it is too large for a frame. */
  add(type: ReplyType, id: number, text: string, flags = 0): boolean {
    const isAdded = this.#writer.add(type, flags, id, text);
    this.#flushSoon();
    return isAdded;
  }

  /** Calls one of the host's tools. Returns `false` if the arguments are too large for a frame. */
  invoke(
    invocation: number,
    tool: number,
    call: number,
    strings: readonly (string | undefined)[],
  ): boolean {
    const isAdded = this.#writer.addStrings(REPLY.invoke, invocation, [tool, call], strings);
    this.#flushSoon();
    return isAdded;
  }

  /** Sends an event of a running call. An event that is too large for a frame is dropped. */
  event(call: number, value: unknown): void {
    const text = writeJson(value);
    if (text !== undefined) this.add(REPLY.metadata, call, text);
  }

  /** Sends the result, the last frame of a call. `tool` is the name if the caller receives events. */
  result(call: number, result: ToolResult, tool: string | undefined): void {
    if (!result.ok) {
      const { error: { code, message, issues }, questions, ticket, repaired } = result;
      // JSON omits `undefined` members.
      return this.#failure(call, { error: code, message, issues, questions, ticket, repaired });
    }
    const { content, repaired } = result;
    if (repaired !== undefined && tool !== undefined) {
      this.event(call, { type: "repaired", repaired });
    }
    const text = writeJson(content);
    const flags = flagsOf(result) << STATUS_SHIFT;
    if (text === undefined || !this.add(REPLY.result, call, text, flags)) {
      const message = "Cannot return the result: it is larger than 256 MiB; request less of it";
      this.failure(call, "output_too_large", message, tool);
    }
  }

  /** Sends the failure of a call that did not reach the dispatcher, or whose result is too large. */
  failure(call: number, code: BridgeFailureCode, message: string, tool: string | undefined): void {
    if (tool !== undefined) this.event(call, { type: "error", tool, error: code, message });
    this.#failure(call, { error: code, message });
  }

  flush(): void {
    this.#flushing = false;
    this.#writer.flush(this.#send);
  }

  #failure(call: number, failure: Failure): void {
    const { error, message } = failure;
    // The message becomes a C string, which a NUL would end.
    const plain = message.replaceAll("\0", "\u{fffd}");
    const flags = FLAG.callFailed | STATUS[error] << STATUS_SHIFT;
    this.#writer.addPair(REPLY.result, flags, call, plain, JSON.stringify(failure));
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#writer.size > MAX_WAITING_BYTES) return this.flush();
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => this.flush());
  }
}

/** Returns the value as JSON, or `undefined` if it exceeds the maximum length of a string. */
function writeJson(value: unknown): string | undefined {
  return attemptOr(undefined, () => JSON.stringify(value) ?? "null");
}
