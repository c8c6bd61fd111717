/**
 * The tools side of the protocol: frames in, calls of the dispatcher, frames out. It knows of no
 * socket and no foreign function; `ffi/PROTOCOL.md` says what it answers.
 *
 * @module
 */

import type { DispatchContext } from "../../execute/mod.ts";
import type { ToolResult } from "../../tool/mod.ts";
import { NativeConfigError, readNativeConfig } from "./config.ts";
import { type Frame, readFrames, readStrings, readText } from "./frame_reader.ts";
import { PROTOCOL_VERSION, ProtocolError, REQUEST, WANTS_METADATA } from "./protocol.ts";
import { Replies } from "./replies.ts";
import { type NativeTools, type Ticker, ToolOffer } from "./tool_offer.ts";

/** Options for {@linkcode ToolHostBridge}. */
export interface ToolHostBridgeOptions {
  /**
   * Gives the tools for a configuration.
   *
   * @param module The module that the host named, if it named one.
   */
  load(module: string | undefined): NativeTools | Promise<NativeTools>;
  /** Gets whole frames. They are valid until it returns. */
  send(frames: Uint8Array): void;
  /** Which runtime this is, for people: `bun 1.4.5`. */
  readonly runtime: string;
  /** The host needs no more answers, until it configures the tools again. */
  onShutdown?(): void;
  /** The tools could not be offered. The host has been told why. */
  onFailed?(): void;
  /** Repeats something; by default with a timer that keeps no process alive. */
  readonly tick?: Ticker;
  /** Tells the time, in milliseconds. */
  readonly now?: () => number;
}

/** How much of the reason for an abort is said again in the call's failure, in characters. */
const MAX_REASON = 1_000;

/** How many controllers are kept for later calls. */
const MAX_SPARE = 64;

/** No configuration's id. */
const NONE = -1;

/** Why there are no tools. */
class Refusal {
  readonly code: "invalid_argument" | "runtime_unavailable";
  readonly message: string;

  constructor(code: "invalid_argument" | "runtime_unavailable", message: string) {
    this.code = code;
    this.message = message;
  }
}

/** Answers one libplue. */
export class ToolHostBridge {
  readonly #options: ToolHostBridgeOptions;
  readonly #replies: Replies;
  /** What aborts each running call. */
  readonly #running: Map<number, AbortController> = new Map();
  /**
   * What aborted nothing, and can serve again: only the dispatcher has seen it, which has let go of
   * it (tools are given another signal). To make one is a tenth of a call's work here.
   */
  readonly #spare: AbortController[] = [];
  #configuration = NONE;
  #offer: ToolOffer | Refusal | Promise<ToolOffer | Refusal> = new Refusal(
    "runtime_unavailable",
    "Cannot call a tool: the tools are not configured",
  );
  #listing = false;

  constructor(options: ToolHostBridgeOptions) {
    this.#options = options;
    this.#replies = new Replies((frames) => options.send(frames));
  }

  /** How many calls are running. */
  get running(): number {
    return this.#running.size;
  }

  /**
   * Takes what libplue sent.
   *
   * @returns How many bytes were whole frames. The rest is to be given again, with what follows.
   * @throws {ProtocolError} If it is not what the protocol allows.
   */
  receive(bytes: Uint8Array): number {
    return readFrames(bytes, (frame) => this.#take(frame));
  }

  /** Asks availability functions again, and tells libplue if the list has changed. */
  refresh(): void {
    if (this.#offer instanceof ToolOffer) this.#list(this.#offer);
  }

  /** Aborts what runs, and lets the registry go. Nothing is answered to libplue after that. */
  close(reason: string): void {
    this.#abortAll(reason);
    this.#release();
    this.#configuration = NONE;
    this.#offer = new Refusal("runtime_unavailable", "Cannot call a tool: the tools are detached");
  }

  #take({ type, flags, id, payload }: Frame): void {
    switch (type) {
      case REQUEST.execute:
        return this.#execute(id, (flags & WANTS_METADATA) !== 0, readStrings(payload, 4));
      case REQUEST.abort:
        return this.#abort(id, readText(payload));
      case REQUEST.shutdown:
        this.#abortAll("The host shuts down");
        return this.#options.onShutdown?.();
      case REQUEST.configure:
        return this.#configure(id, flags, readStrings(payload, 2));
      case REQUEST.ping:
        return this.#replies.pong(id);
      default:
        throw new ProtocolError(`Cannot read a frame: there is no type ${type}`);
    }
  }

  #configure(id: number, version: number, [module, json]: (string | undefined)[]): void {
    this.#release();
    this.#configuration = id;
    if (version !== PROTOCOL_VERSION) {
      const versions = `libplue speaks version ${version}, the tools ${PROTOCOL_VERSION}`;
      return this.#refuse(new Error(`Cannot agree on a protocol: ${versions}`));
    }
    try {
      const config = readNativeConfig(json);
      const open = (tools: NativeTools): ToolOffer => {
        const { tick = every, now = () => performance.now() } = this.#options;
        return new ToolOffer(tools, config, () => this.#listSoon(), tick, now);
      };
      const tools = this.#options.load(module);
      if (!(tools instanceof Promise)) return this.#begin(open(tools));
      this.#offer = tools.then(open).then(
        (offer) => {
          if (this.#configuration === id) this.#begin(offer);
          else offer.close();
          return offer;
        },
        (error: unknown) => {
          if (this.#configuration === id) this.#refuse(error);
          return refusalOf(error);
        },
      );
    } catch (error) {
      this.#refuse(error);
    }
  }

  #begin(offer: ToolOffer): void {
    this.#offer = offer;
    if (this.#list(offer)) this.#replies.hello(this.#configuration, this.#options.runtime);
  }

  #refuse(error: unknown): void {
    const refusal = refusalOf(error);
    this.#offer = refusal;
    const isHostAtFault = refusal.code === "invalid_argument";
    this.#replies.failed(this.#configuration, refusal.message, isHostAtFault);
    this.#replies.flush();
    this.#options.onFailed?.();
  }

  /** Lets go of the last configuration. */
  #release(): void {
    const offer = this.#offer;
    if (offer instanceof ToolOffer) offer.close();
  }

  /** Many tools may be registered in a row: libplue gets one list for all of them. */
  #listSoon(): void {
    if (this.#listing) return;
    this.#listing = true;
    queueMicrotask(() => {
      this.#listing = false;
      this.refresh();
    });
  }

  /** Tells libplue the list, if it is a new one. `false` if that is impossible. */
  #list(offer: ToolOffer): boolean {
    const list = offer.newList();
    if (list === undefined || this.#replies.tools(this.#configuration, list)) return true;
    offer.close();
    this.#refuse(new Error("Cannot list the tools: the list is larger than 256 MiB"));
    return false;
  }

  #execute(id: number, wantsEvents: boolean, strings: (string | undefined)[]): void {
    const offer = this.#offer;
    const controller = this.#spare.pop() ?? new AbortController();
    this.#running.set(id, controller);
    if (offer instanceof ToolOffer) {
      this.#dispatch(offer, id, wantsEvents, strings, controller);
    } else if (offer instanceof Refusal) this.#refuseCall(offer, id, wantsEvents);
    else {
      offer.then((later) =>
        later instanceof ToolOffer
          ? this.#dispatch(later, id, wantsEvents, strings, controller)
          : this.#refuseCall(later, id, wantsEvents)
      );
    }
  }

  #dispatch(
    offer: ToolOffer,
    id: number,
    wantsEvents: boolean,
    [name = "", params, sessionId, messageId]: (string | undefined)[],
    controller: AbortController,
  ): void {
    const { signal } = controller;
    const context: DispatchContext = { sessionId, messageId, signal };
    offer.dispatcher
      .dispatch({ name, arguments: params }, wantsEvents ? this.#listening(id, context) : context)
      .then((result) => {
        this.#running.delete(id);
        if (!signal.aborted && this.#spare.length < MAX_SPARE) this.#spare.push(controller);
        // First the list: whoever has the result may ask for it.
        if (offer.isListStale && offer === this.#offer) this.#list(offer);
        this.#replies.result(id, signal.aborted ? withReason(result, signal) : result, wantsEvents);
      });
  }

  #listening(id: number, context: DispatchContext): DispatchContext {
    const replies = this.#replies;
    return {
      ...context,
      metadata: (value) => replies.event(id, value),
      progress: (progress) => replies.event(id, { type: "progress", ...progress }),
      output: (value) => replies.event(id, { type: "output", value }),
    };
  }

  #refuseCall({ code, message }: Refusal, id: number, wantsEvents: boolean): void {
    this.#running.delete(id);
    this.#replies.failure(id, code, message, wantsEvents);
  }

  #abort(id: number, reason: string): void {
    this.#running.get(id)?.abort(abortError(reason));
  }

  #abortAll(reason: string): void {
    for (const controller of this.#running.values()) controller.abort(abortError(reason));
  }
}

const NO_REASON = "The host aborted the call";

function abortError(reason: string): DOMException {
  return new DOMException(reason === "" ? NO_REASON : reason, "AbortError");
}

/** The dispatcher says that a call was aborted; the host also said why. */
function withReason(result: ToolResult, { reason }: AbortSignal): ToolResult {
  if (result.ok || result.error.code !== "aborted") return result;
  // Every abort here is by abortError.
  const { message: why } = reason as DOMException;
  if (why === NO_REASON) return result;
  const message = `${result.error.message}: ${why.slice(0, MAX_REASON)}`;
  return { ...result, error: { ...result.error, message } };
}

function refusalOf(error: unknown): Refusal {
  const message = error instanceof Error ? error.message : String(error);
  const isHostAtFault = error instanceof NativeConfigError;
  return new Refusal(isHostAtFault ? "invalid_argument" : "runtime_unavailable", message);
}

/** A timer that does not keep a process alive by itself, where timers can be told so. */
function every(run: () => void, ms: number): () => void {
  const timer: unknown = setInterval(run, ms);
  if (typeof timer === "object" && timer !== null && "unref" in timer) {
    (timer as { unref(): void }).unref();
  }
  return () => clearInterval(timer as number);
}
