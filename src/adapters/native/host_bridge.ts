/**
 * The tools side of the protocol: reads frames of libplue, calls the dispatcher, and writes frames.
 * Sockets and foreign functions are in other files. `ffi/PROTOCOL.md` specifies the frames.
 */

import type { DispatchContext } from "../../execute/mod.ts";
import { describeThrown, isObject, once, type ToolResult } from "../../tool/mod.ts";
import * as wire from "./frames.ts";
import { FLAG, PROTOCOL_VERSION, readStrings, REPLY, REQUEST } from "./frames.ts";
import { HOST_CALL, HostFunctions } from "./host_functions.ts";
import {
  HostTools,
  NativeConfigError,
  type NativeTools,
  operate,
  OPERATION,
  readNativeConfig,
  type Refusal,
  type Ticker,
} from "./host_tools.ts";
import { Replies } from "./replies.ts";

export interface HostBridgeOptions {
  /**
   * Returns the tools for a configuration.
   *
   * @param module The name of the module in the host's configuration, if there is one.
   */
  load(module: string | undefined): NativeTools | Promise<NativeTools>;
  /** Sends whole frames, which are valid until this returns. */
  send(frames: Uint8Array): void;
  /** The runtime and its version, such as `bun 1.4.5`. */
  readonly runtime: string;
  /** Called when the host needs no more responses, until it configures the tools again. */
  onShutdown?(): void;
  /** Called when the tools could not be loaded, after the host has received the reason. */
  onFailed?(): void;
  onLargeCall?(): void;
  /** Calls a function at an interval. By default, a timer that does not keep the process alive. */
  readonly tick?: Ticker;
  readonly now?: () => number;
}

/** The maximum length of an abort's reason in the call's failure, in characters. */
const MAX_REASON = 1_000;

/** The maximum number of controllers for later calls. */
const MAX_SPARE = 64;

/** Calls above this size are dispatched later, after the bytes of their frame are freed. */
const LARGE_CALL_BYTES = 1024 * 1024;

/** The id before the first configuration, and after the last. */
const NONE = -1;

/** The id that means no abort signal. */
const NO_SIGNAL = 0;

interface HostCall {
  readonly id: number;
  readonly signalId: number;
  readonly flags: number;
  readonly strings: (string | undefined)[];
  readonly controller: AbortController;
}

const unavailable = (message: string): Refusal => ({ code: "runtime_unavailable", message });

/** Answers the frames of one libplue. */
export class HostBridge {
  readonly #options: HostBridgeOptions;
  readonly #replies: Replies;
  readonly #functions: HostFunctions;
  readonly #running: Map<number, AbortController> = new Map();
  /** The running calls that carry an abort signal, by the signal's id. */
  readonly #carriers: Map<number, Set<number>> = new Map();
  /**
   * Unused controllers of ended calls, for later calls: a new controller takes a tenth of a call's time
   * here. Tools never receive the signals of these controllers.
   */
  readonly #spare: AbortController[] = [];
  #configuration = NONE;
  #tools: HostTools | Refusal | Promise<HostTools | Refusal> = unavailable(
    "Cannot call a tool: the tools are not configured",
  );
  #listing = false;

  constructor(options: HostBridgeOptions) {
    this.#options = options;
    this.#replies = new Replies((frames) => options.send(frames));
    this.#functions = new HostFunctions(this.#replies, (error) => {
      this.#replies.add(REPLY.log, 0, messageOf(error));
    });
  }

  get running(): number {
    return this.#running.size;
  }

  /**
   * Handles the whole frames at the beginning of `bytes`, and returns their size.
   *
   * @throws {FrameError} If a frame breaks the protocol.
   */
  receive(bytes: Uint8Array): number {
    return wire.readFrames(bytes, (frame) => this.#take(frame));
  }

  /** Calls availability functions, and sends libplue the list if it has changed. */
  refresh(): void {
    if (this.#tools instanceof HostTools) this.#list(this.#tools);
  }

  /** Aborts the running calls, and stops following the registry. Sends no further frames. */
  close(reason: string): void {
    this.#abortAll(reason);
    this.#release();
    this.#functions.clear();
    this.#configuration = NONE;
    this.#tools = unavailable("Cannot call a tool: the tools are detached");
  }

  #take({ type, flags, id, payload }: wire.Frame): void {
    switch (type) {
      case REQUEST.execute:
        return this.#execute(id, flags, payload);
      case REQUEST.abort:
        return this.#abort(id, (flags & FLAG.abortsSignal) !== 0, wire.readText(payload));
      case REQUEST.shutdown:
        this.#abortAll("The host shuts down");
        this.#functions.clear();
        return this.#options.onShutdown?.();
      case REQUEST.configure:
        return this.#configure(id, flags, readStrings(payload, 2));
      case REQUEST.register:
        return this.#register(id, flags, payload);
      case REQUEST.unregister:
        this.#functions.remove(wire.readId(payload));
        return this.#answer(id, null);
      case REQUEST.yield:
        return this.#yield(id, flags, payload);
      case REQUEST.ping:
        return void this.#replies.add(REPLY.pong, id, "");
      default:
        throw new wire.FrameError(`Cannot read a frame: there is no type ${type}`);
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
      const open = (tools: NativeTools): HostTools => {
        const { tick = every, now = () => performance.now() } = this.#options;
        return new HostTools(tools, config, () => this.#listSoon(), tick, now);
      };
      const tools = this.#options.load(module);
      if (!(tools instanceof Promise)) return this.#begin(open(tools));
      this.#tools = tools.then(open).then(
        (tools) => {
          if (this.#configuration === id) this.#begin(tools);
          else tools.close();
          return tools;
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

  #begin(tools: HostTools): void {
    this.#tools = tools;
    this.#functions.follow(tools.registry);
    if (!this.#list(tools)) return;
    const text = JSON.stringify({ protocol: PROTOCOL_VERSION, runtime: this.#options.runtime });
    this.#replies.add(REPLY.hello, this.#configuration, text, PROTOCOL_VERSION);
  }

  /** Reports that the tools are no longer available. Later calls of the host fail with the message. */
  giveUp(message: string): void {
    this.#refuse(new Error(message));
  }

  #refuse(error: unknown): void {
    const refusal = refusalOf(error);
    this.#tools = refusal;
    const flags = refusal.code === "invalid_argument" ? FLAG.badConfiguration : 0;
    this.#replies.add(REPLY.failed, this.#configuration, refusal.message, flags);
    this.#replies.flush();
    this.#options.onFailed?.();
  }

  #release(): void {
    const tools = this.#tools;
    if (tools instanceof HostTools) tools.close();
  }

  /** Sends one list for all changes of a turn, because a program may register many tools together. */
  #listSoon(): void {
    if (this.#listing) return;
    this.#listing = true;
    queueMicrotask(() => {
      this.#listing = false;
      this.refresh();
    });
  }

  /** Sends the list if it has changed. Returns `false` if it cannot be sent. */
  #list(tools: HostTools): boolean {
    const list = tools.newList();
    if (list === undefined || this.#replies.add(REPLY.tools, this.#configuration, list)) {
      return true;
    }
    tools.close();
    this.#refuse(new Error("Cannot list the tools: the list is larger than 256 MiB"));
    return false;
  }

  #register(id: number, flags: number, payload: Uint8Array): void {
    const [definition = ""] = readStrings(payload.subarray(wire.SIGNAL_BYTES), 1);
    const needsResult = (flags & FLAG.needsResult) !== 0;
    try {
      const tool = this.#functions.add(wire.readId(payload), definition);
      if (needsResult) this.#answer(id, tool);
    } catch (error) {
      const message = messageOf(error);
      if (needsResult) this.#replies.failure(id, "invalid_argument", message, undefined);
      else this.#replies.add(REPLY.log, 0, message);
    }
  }

  /** Answers a frame that is not a call of a tool. First sends the list if it has changed. */
  #answer(id: number, content: unknown): void {
    this.refresh();
    this.#replies.result(id, { ok: true, content, durationMs: 0 }, undefined);
  }

  #yield(id: number, kind: number, payload: Uint8Array): void {
    const [first, second] = wire.readNumbers(payload, kind === wire.YIELD.progress);
    const [text = ""] = readStrings(payload.subarray(wire.YIELD_BYTES), 1);
    this.#functions.receive(id, { kind, first, second, text });
  }

  #execute(id: number, flags: number, payload: Uint8Array): void {
    const tools = this.#tools;
    const call: HostCall = {
      id,
      signalId: wire.readId(payload),
      flags,
      strings: readStrings(payload.subarray(wire.SIGNAL_BYTES), 4),
      controller: this.#spare.pop() ?? new AbortController(),
    };
    this.#running.set(id, call.controller);
    if (call.signalId !== NO_SIGNAL) {
      once(this.#carriers, call.signalId, () => new Set<number>()).add(id);
    }
    // The bytes of a large call are freed before its strings are parsed.
    if (tools instanceof Promise || payload.length > LARGE_CALL_BYTES) {
      void Promise.resolve(tools).then((ready) => this.#dispatch(ready, call));
    } else this.#dispatch(tools, call);
  }

  #end({ id, signalId }: HostCall): void {
    this.#running.delete(id);
    if (signalId === NO_SIGNAL) return;
    const carriers = this.#carriers.get(signalId);
    carriers?.delete(id);
    if (carriers?.size === 0) this.#carriers.delete(signalId);
  }

  #dispatch(tools: HostTools | Refusal, call: HostCall): void {
    const { id, flags } = call;
    // Releases a large text, from which the arguments are parsed.
    const [name = "", params, sessionId, messageId] = call.strings.splice(0);
    const sendsEvents = (flags & FLAG.sendsMetadata) !== 0;
    const operation = flags >> wire.OPERATION_SHIFT;
    const isCall = operation === OPERATION.call;
    // The name, if the caller receives events. A call that resumes has a ticket instead of a name.
    const tool = !sendsEvents ? undefined : isCall ? name : "";
    if (!(tools instanceof HostTools)) {
      this.#end(call);
      return this.#replies.failure(id, tools.code, tools.message, tool);
    }
    const { signal } = call.controller;
    let context: DispatchContext = { sessionId, messageId, signal };
    if (sendsEvents) context = this.#listening(id, signal, context);
    if ((flags & FLAG.answersQuestions) !== 0) {
      context = {
        ...context,
        onQuestion: (question, { tool, signal }) =>
          this.#functions.ask(id, { ...question, tool: tool.id }, signal),
      };
    }
    // The host's own tools need the id of the call. The name of the call does not show whether it
    // is for such a tool: it may be an alias, or the call may go through a bridge.
    if (!isCall || !this.#functions.isEmpty) {
      context = { ...context, services: { [HOST_CALL]: id } };
    }
    const isLarge = params !== undefined && params.length > LARGE_CALL_BYTES;
    const answer: Promise<ToolResult | Refusal> = isCall
      ? tools.dispatcher.dispatch({ name, arguments: params }, context)
      : operate(tools, operation, name, params, context);
    answer.catch((error: unknown): Refusal => {
      this.#replies.add(REPLY.log, 0, `Cannot use the store of tasks: ${messageOf(error)}`);
      return { code: "unavailable", message: "The store of tasks failed; the effect is unknown" };
    }).then((result) => {
      this.#end(call);
      if (isLarge) this.#options.onLargeCall?.();
      if (!signal.aborted && this.#spare.length < MAX_SPARE) this.#spare.push(call.controller);
      // First sends the list, because the host may read it as soon as it has the result.
      if (tools.isListStale && tools === this.#tools) this.#list(tools);
      if (!("ok" in result)) return this.#replies.failure(id, result.code, result.message, tool);
      const reported = !result.ok && result.error.code === "aborted"
        ? { ...result, error: withReason(result.error, signal) }
        : result;
      this.#replies.result(id, reported, tool);
    });
  }

  #listening(id: number, signal: AbortSignal, context: DispatchContext): DispatchContext {
    const replies = this.#replies;
    return {
      ...context,
      metadata: (value) => replies.event(id, isAborted(value) ? withReason(value, signal) : value),
      progress: (progress) => replies.event(id, { type: "progress", ...progress }),
      output: (value) => replies.event(id, { type: "output", value }),
    };
  }

  #abort(id: number, isSignal: boolean, reason: string): void {
    const ids = isSignal ? this.#carriers.get(id) ?? [] : [id];
    for (const call of ids) this.#running.get(call)?.abort(abortError(reason));
  }

  #abortAll(reason: string): void {
    for (const controller of this.#running.values()) controller.abort(abortError(reason));
  }
}

const NO_REASON = "The host aborted the call";

function abortError(reason: string): DOMException {
  return new DOMException(reason === "" ? NO_REASON : reason, "AbortError");
}

/** True for the metadata that the dispatcher sends for an aborted call. */
function isAborted(value: unknown): value is { readonly message: string } {
  return isObject(value) && value["type"] === "error" && value["error"] === "aborted" &&
    typeof value["message"] === "string";
}

function withReason<Failure extends { readonly message: string }>(
  failure: Failure,
  { aborted, reason }: AbortSignal,
): Failure {
  // The bridge aborts only with abortError. A tool may itself fail with the code "aborted".
  const why = aborted ? (reason as DOMException).message : NO_REASON;
  return why === NO_REASON
    ? failure
    : { ...failure, message: `${failure.message}: ${why.slice(0, MAX_REASON)}` };
}

const messageOf = (error: unknown): string => describeThrown(error, Infinity);

function refusalOf(error: unknown): Refusal {
  const message = messageOf(error);
  return error instanceof NativeConfigError
    ? { code: "invalid_argument", message }
    : unavailable(message);
}

/** A timer that does not keep a process alive, on runtimes that support this. */
function every(run: () => void, ms: number): () => void {
  const timer = setInterval(run, ms);
  (timer as { unref?(): void }).unref?.();
  return () => clearInterval(timer);
}
