/**
 * What the tools side tells libplue, as frames.
 *
 * @module
 */

import type { ToolResult } from "../../tool/mod.ts";
import { FrameWriter } from "./frame_writer.ts";
import {
  CALL_FAILED,
  CONFIGURATION_AT_FAULT,
  PROTOCOL_VERSION,
  REPLY,
  type ReplyType,
} from "./protocol.ts";

/** Codes that only the way from libplue to the dispatcher knows. */
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
    this.#add(REPLY.failed, configuration, why, isHostAtFault ? CONFIGURATION_AT_FAULT : 0);
  }

  /** The event loop turns. */
  pong(id: number): void {
    this.#add(REPLY.pong, id, "");
  }

  /** Something that a call's tool says while it runs. What is too large for a frame is dropped. */
  event(call: number, value: unknown): void {
    const text = writeJson(value);
    if (text !== undefined) this.#add(REPLY.metadata, call, text);
  }

  /** How a call ended. Its last frame. */
  result(call: number, result: ToolResult, wantsEvents: boolean): void {
    if (!result.ok) {
      const { code, message, issues } = result.error;
      return this.#failure(
        call,
        message,
        { error: code, message, ...(issues === undefined ? {} : { issues }) },
        wantsEvents,
      );
    }
    const text = writeJson(result.content);
    if (text === undefined || !this.#add(REPLY.result, call, text)) {
      const message = "Cannot hand the result over: it is larger than 256 MiB; ask for less of it";
      this.failure(call, "output_too_large", message, wantsEvents);
    }
  }

  /** A call that the dispatcher was not asked about, or whose result cannot be handed over. */
  failure(call: number, code: BridgeFailureCode, message: string, wantsEvents: boolean): void {
    this.#failure(call, message, { error: code, message }, wantsEvents);
  }

  /** Sends what is waiting. */
  flush(): void {
    this.#flushing = false;
    this.#writer.flush(this.#send);
  }

  #failure(call: number, message: string, failure: object, wantsEvents: boolean): void {
    if (wantsEvents) this.event(call, { type: "error", ...failure });
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

/** JSON, unless it would be longer than a string can be. The dispatcher has seen that it is JSON. */
function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return undefined;
  }
}
