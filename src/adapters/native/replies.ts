/**
 * The frames that the tools side sends to libplue.
 *
 * @module
 */

import type { FailureCode, ToolFailure, ToolResult } from "../../tool/mod.ts";
import {
  BAD_CONFIGURATION,
  CALL_FAILED,
  FrameWriter,
  PROTOCOL_VERSION,
  REPLY,
  type ReplyType,
  STATUS_SHIFT,
} from "./frames.ts";
import { type BridgeFailureCode, flagsOf, STATUS } from "./statuses.ts";

/** A failure, as the host receives it. */
interface Failure {
  readonly error: FailureCode | BridgeFailureCode;
  readonly message: string;
  readonly issues?: ToolFailure["error"]["issues"] | undefined;
  readonly questions?: ToolFailure["questions"] | undefined;
  readonly ticket?: string | undefined;
  readonly repaired?: ToolFailure["repaired"] | undefined;
}

/** More than this is sent immediately: a tool that never waits may send without end. */
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

  /** Sends the host's tools. Returns `false` if the list is too large for a frame. */
  tools(configuration: number, list: string): boolean {
    return this.#add(REPLY.tools, configuration, list);
  }

  /** The tools are ready. */
  hello(configuration: number, runtime: string): void {
    const text = JSON.stringify({ protocol: PROTOCOL_VERSION, runtime });
    this.#add(REPLY.hello, configuration, text, PROTOCOL_VERSION);
  }

  /** The tools cannot be offered. */
  failed(configuration: number, why: string, isHostAtFault: boolean): void {
    this.#add(REPLY.failed, configuration, why, isHostAtFault ? BAD_CONFIGURATION : 0);
  }

  /** A line for the host's log. */
  log(text: string): void {
    this.#add(REPLY.log, 0, text);
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

  /** Reports the abort of a call for which the host runs a tool. */
  cancel(invocation: number, reason: string): void {
    this.#add(REPLY.cancel, invocation, reason);
  }

  /** Responds to a ping. */
  pong(id: number): void {
    this.#add(REPLY.pong, id, "");
  }

  /** An event of a running call. One that is too large for a frame is dropped. */
  event(call: number, value: unknown): void {
    const text = writeJson(value);
    if (text !== undefined) this.#add(REPLY.metadata, call, text);
  }

  /**
   * The end of a call, and its last frame. The dispatcher has sent the event of a failure.
   *
   * @param tool The name in the call, if the caller receives events.
   */
  result(call: number, result: ToolResult, tool: string | undefined): void {
    if (!result.ok) {
      const { error: { code, message, issues }, questions, ticket, repaired } = result;
      // JSON leaves out what is undefined.
      return this.#failure(call, { error: code, message, issues, questions, ticket, repaired });
    }
    const { content, repaired } = result;
    if (repaired !== undefined && tool !== undefined) {
      this.event(call, { type: "repaired", repaired });
    }
    const text = writeJson(content);
    const flags = flagsOf(result) << STATUS_SHIFT;
    if (text === undefined || !this.#add(REPLY.result, call, text, flags)) {
      const message = "Cannot return the result: it is larger than 256 MiB; request less of it";
      this.failure(call, "output_too_large", message, tool);
    }
  }

  /**
   * The failure of a call outside of the dispatcher, or of one whose result is too large.
   *
   * @param tool The name in the call, if the caller receives events.
   */
  failure(call: number, code: BridgeFailureCode, message: string, tool: string | undefined): void {
    if (tool !== undefined) this.event(call, { type: "error", tool, error: code, message });
    this.#failure(call, { error: code, message });
  }

  /** Sends the waiting replies. */
  flush(): void {
    this.#flushing = false;
    this.#writer.flush(this.#send);
  }

  #failure(call: number, failure: Failure): void {
    const { error, message } = failure;
    // The message becomes a C string, which a NUL would end.
    const plain = message.replaceAll("\0", "\u{fffd}");
    const flags = CALL_FAILED | STATUS[error] << STATUS_SHIFT;
    this.#writer.addPair(REPLY.result, flags, call, plain, JSON.stringify(failure));
    this.#flushSoon();
  }

  #add(type: ReplyType, id: number, text: string, flags = 0): boolean {
    const isAdded = this.#writer.add(type, flags, id, text);
    this.#flushSoon();
    return isAdded;
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
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return undefined;
  }
}
