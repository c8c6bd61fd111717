/**
 * What the tools side tells libplue, as frames.
 *
 * @module
 */

import type { ToolResult } from "../../tool/mod.ts";
import {
  BAD_CONFIGURATION,
  CALL_FAILED,
  FrameWriter,
  PROTOCOL_VERSION,
  REPLY,
  type ReplyType,
} from "./frames.ts";

/** Codes of failures between libplue and the dispatcher. */
export type BridgeFailureCode = "invalid_argument" | "runtime_unavailable" | "output_too_large";

/** More than this is sent at once: a tool that never waits may send without end. */
const MAX_WAITING_BYTES = 256 * 1024;

/** Writes replies, and sends those of one turn of the event loop together. */
export class Replies {
  readonly #writer: FrameWriter = new FrameWriter();
  readonly #send: (frames: Uint8Array) => void;
  #flushing = false;

  /** @param send Gets whole frames. They are valid until it returns. */
  constructor(send: (frames: Uint8Array) => void) {
    this.#send = send;
  }

  /** The tools that the host sees. `false` if the list is too large for a frame. */
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

  /** Answers a ping. */
  pong(id: number): void {
    this.#add(REPLY.pong, id, "");
  }

  /** An event of a running call. One that is too large for a frame is dropped. */
  event(call: number, value: unknown): void {
    const text = writeJson(value);
    if (text !== undefined) this.#add(REPLY.metadata, call, text);
  }

  /**
   * How a call ended. Its last frame. The dispatcher has told of its failures.
   *
   * @param tool The name in the call, if the caller wants events.
   */
  result(call: number, result: ToolResult, tool: string | undefined): void {
    if (!result.ok) {
      const { code, message, issues } = result.error;
      return this.#failure(
        call,
        message,
        { error: code, message, ...(issues === undefined ? {} : { issues }) },
      );
    }
    const text = writeJson(result.content);
    if (text === undefined || !this.#add(REPLY.result, call, text)) {
      const message = "Cannot hand the result over: it is larger than 256 MiB; ask for less of it";
      this.failure(call, "output_too_large", message, tool);
    }
  }

  /**
   * A call that the dispatcher was not asked about, or whose result cannot be handed over.
   *
   * @param tool The name in the call, if the caller wants events.
   */
  failure(call: number, code: BridgeFailureCode, message: string, tool: string | undefined): void {
    if (tool !== undefined) this.event(call, { type: "error", tool, error: code, message });
    this.#failure(call, message, { error: code, message });
  }

  /** Sends the waiting replies. */
  flush(): void {
    this.#flushing = false;
    this.#writer.flush(this.#send);
  }

  #failure(call: number, message: string, failure: object): void {
    // The message becomes a C string, which a NUL would end.
    const plain = message.replaceAll("\0", "\u{fffd}");
    this.#writer.addPair(REPLY.result, CALL_FAILED, call, plain, JSON.stringify(failure));
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

/** The value as JSON, or `undefined` if that is longer than a string can be. */
function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return undefined;
  }
}
