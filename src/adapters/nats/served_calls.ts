/** The worker's side of plain calls: receives and runs them, and sends their events and results. */

import type { Msg, Subscription } from "@nats-io/nats-core";
import type { ToolDispatcher, ToolEvent } from "../../execute/mod.ts";
import {
  callHook,
  type Clock,
  isObject,
  noop,
  systemClock,
  type Tool,
  within,
} from "../../tool/mod.ts";
import * as protocol from "./protocol.ts";
import type { Frame } from "./protocol.ts";
import type { Link } from "./link.ts";
import { parseJson } from "../../execute/durable/mod.ts";

export interface ServedCallsSettings {
  readonly link: Link;
  readonly worker: string;
  readonly dispatcher: ToolDispatcher;
  readonly toolAt: (path: string) => Tool | undefined;
  readonly clock?: Clock;
  /** The maximum size of incomplete calls, and of results that wait to be sent, in bytes. */
  readonly maxKeptBytes?: number;
}

export const MAX_KEPT_BYTES = 134_217_728;
/** If a tick is this late, the process was stopped, and waiting messages may be old. */
const STALL_MS = 3 * protocol.TICK_MS;
/** The delay of calls after such a stop, so that waiting aborts are read first. */
const SETTLE_MS = 50;
/** The maximum wait for a confirmation of the server while the worker stops, in milliseconds. */
const CONFIRMED_MS = 2_000;
/** Ids of calls are stored for this many ticks: longer than a call is valid by any clock. */
const TICKS_TO_FORGET = 2 * protocol.MAX_AGE_MS / protocol.TICK_MS + 2;

/** A call in flight, or a call that waits for its caller's confirmation. */
interface ServedCall {
  readonly tool: Tool;
  readonly sender: protocol.Sender;
  readonly abort: AbortController;
  /** The lowest sequence accepted from the caller; lower ones are duplicates. */
  nextControl: number;
  /** Starts the call; `undefined` once it has started. */
  begin: (() => void) | undefined;
  /** The number of bytes of events that may be sent. */
  credit: number;
  granted: number;
  onCredit: () => void;
  silence: number;
  /** True while a large result or output waits to be sent. */
  isSending: boolean;
}

interface PartialCall {
  readonly receiver: protocol.Receiver;
  silence: number;
}

export class ServedCalls {
  readonly #settings: ServedCallsSettings;
  readonly #clock: Clock;
  readonly #calls: Subscription;
  readonly #controls: Subscription;
  readonly #prefix: string;
  readonly #controlPrefix: string;
  readonly #outbox: protocol.Outbox;
  readonly #running: Map<string, ServedCall> = new Map();
  /** The incomplete calls, by reply subject. */
  readonly #partial: Map<string, PartialCall> = new Map();
  #partialBytes = 0;
  /** The ids of this period's calls, and of the previous period's: a known id is a duplicate. */
  #seen: Set<string> = new Set();
  #seenBefore: Set<string> = new Set();
  #ticks = 0;
  #lastTick: number;
  /** The time until which calls are delayed after a stop of the process. */
  #settledAt = 0;
  #stopTicking: () => void = () => {};
  #isDraining = false;
  #onIdle: () => void = () => {};

  constructor(settings: ServedCallsSettings) {
    this.#settings = settings;
    const { link: { connection, listen }, worker, clock = systemClock } = settings;
    this.#clock = clock;
    this.#outbox = new protocol.Outbox(connection);
    this.#lastTick = clock.now();
    this.#prefix = protocol.callSubject(worker, "");
    this.#controlPrefix = protocol.controlSubject(worker, "");
    this.#controls = listen(`${this.#controlPrefix}*`, (message) => this.#control(message));
    this.#calls = listen(`${this.#prefix}>`, (message) => this.#take(message));
    this.#tick();
  }

  get running(): number {
    return this.#running.size;
  }

  /** Accepts no more calls, and waits for the calls in flight, which are aborted after `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    const { connection, log } = this.#settings.link;
    /** Waits for the server's confirmation, which does not come if the connection is lost or silent. */
    const confirmed = async (confirm: () => Promise<unknown>): Promise<void> => {
      if (connection.isClosed()) return;
      await within(this.#clock, CONFIRMED_MS, Promise.race([confirm(), connection.closed()]));
    };
    const disarm = this.#clock.setTimeout(() => {
      for (const served of [...this.#running.values()]) this.#abort(served, "the worker stops");
    }, graceMs);
    // Calls that arrive now are rejected, so that callers use another worker immediately.
    await confirmed(() => this.#calls.drain().catch(log));
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#onIdle = resolve);
    disarm();
    this.#stopTicking();
    this.#controls.unsubscribe();
    await confirmed(() => connection.flush().catch(noop));
  }

  /** Aborts a call. If it has not started, its tool does not run. */
  #abort(served: ServedCall, why: string): void {
    served.abort.abort(new DOMException(why, "AbortError"));
    served.begin?.();
    served.onCredit();
  }

  #take(message: Msg): void {
    const { link, maxKeptBytes = MAX_KEPT_BYTES } = this.#settings;
    const { subject, reply } = message;
    const part = protocol.openPart(link.seal, message);
    if (part === undefined || !protocol.isInbox(reply)) {
      return link.logForged("A call has a wrong signature, and was not run");
    }
    const { receiver } = this.#forget(reply) ?? { receiver: new protocol.Receiver() };
    const call = receiver.take(part);
    if (isObject(call)) return this.#begin(subject, reply, call as unknown as protocol.CallMessage);
    if (call === protocol.GAP) return;
    if (this.#partialBytes + receiver.bytes > maxKeptBytes) {
      const why = "the worker has no memory for another call of this size";
      return void this.#answer(reply).send({ type: "refused", why } satisfies Frame);
    }
    this.#partial.set(reply, { receiver, silence: 0 });
    this.#partialBytes += receiver.bytes;
  }

  /** Returns a sender of answers. A caller accepts only the answers of the worker that has its call. */
  #answer(reply: string): protocol.Sender {
    const { link: { connection, seal }, worker } = this.#settings;
    return new protocol.Sender(
      connection,
      seal,
      reply,
      protocol.controlSubject(worker, protocol.callIdOf(reply)),
    );
  }

  #forget(reply: string): PartialCall | undefined {
    const partial = this.#partial.get(reply);
    if (partial === undefined) return undefined;
    this.#partial.delete(reply);
    this.#partialBytes -= partial.receiver.bytes;
    return partial;
  }

  #begin(subject: string, reply: string, call: protocol.CallMessage): void {
    const { link: { log }, toolAt, maxKeptBytes = MAX_KEPT_BYTES } = this.#settings;
    const { id } = call;
    // Answers go to the caller whose call has this id.
    if (id !== protocol.callIdOf(reply)) return;
    if (this.#running.has(id) || this.#seen.has(id) || this.#seenBefore.has(id)) return;
    this.#seen.add(id);
    const sender = this.#answer(reply);
    const refuse = (why: string): void =>
      void sender.send({ type: "refused", why } satisfies Frame);
    const age = this.#clock.timestamp() - call.time;
    const tool = toolAt(subject.slice(this.#prefix.length));
    if (Math.abs(age) > protocol.MAX_AGE_MS) {
      const seconds = Math.round(Math.abs(age) / 1_000);
      return refuse(`it is ${seconds} s ${age > 0 ? "old" : "early"} by the worker's clock`);
    }
    if (this.#isDraining || tool === undefined) {
      return refuse(this.#isDraining ? "the worker stops" : "the worker has no such tool");
    }
    if (this.#outbox.waiting > maxKeptBytes && this.#isSending(tool)) {
      return refuse("the worker has no memory for a result: large results wait to be sent");
    }
    const run = (): void => {
      void this.#run(tool, call, served).catch(log).finally(() => {
        this.#running.delete(id);
        if (this.#running.size === 0) this.#onIdle();
      });
    };
    const served: ServedCall = {
      ...{ tool, sender, abort: new AbortController(), nextControl: 0 },
      begin: () => {
        served.begin = undefined;
        // After a stop of the process, an abort of this call may be the next message.
        const now = this.#clock.now();
        const isSettled = now >= this.#settledAt && now - this.#lastTick <= STALL_MS;
        if (isSettled) run();
        else this.#clock.setTimeout(run, SETTLE_MS);
      },
      ...{ credit: protocol.FIRST_CREDIT, granted: 0, onCredit: () => {} },
      ...{ silence: 0, isSending: false },
    };
    this.#running.set(id, served);
    // A tool that may not run twice starts when the caller has confirmed `accepted`. Until then nothing
    // has run, so the caller may send the call to another worker.
    if (tool.idempotent === true) served.begin?.();
    else void this.#sendFrame(served, { type: "accepted" });
  }

  /** True while a large result or output of a tool waits to be sent. */
  #isSending(tool: Tool): boolean {
    return [...this.#running.values()].some((served) => served.isSending && served.tool === tool);
  }

  async #run(tool: Tool, call: protocol.CallMessage, served: ServedCall): Promise<void> {
    const { dispatcher, link: { log } } = this.#settings;
    const { signal } = served.abort;
    let last: ToolEvent | undefined;
    const context = { ...protocol.contextOf(call, tool), signal };
    for await (const event of dispatcher.stream(protocol.requestOf(call, tool), context)) {
      last = event;
      if (event.type === "result") break;
      while (served.credit <= 0 && !signal.aborted) {
        await new Promise<void>((resolve) => served.onCredit = resolve);
      }
      const { type } = event;
      const bytes = await this.#sendFrame(
        served,
        type === "progress" ? { type, progress: event.progress } : { type, value: event.value },
      );
      served.credit -= protocol.creditOf(bytes);
    }
    const { result } = last as Extract<ToolEvent, { readonly type: "result" }>;
    // Another worker may have a free slot. A ticket is valid again if nothing has run.
    const isLeft = !result.ok && result.error.code === "overloaded" &&
      (call.ticket === undefined || result.error.ran === "no" || tool.idempotent);
    try {
      await this.#sendFrame(
        served,
        isLeft
          ? { type: "refused", why: "the worker is overloaded", result }
          : { type: "result", result },
      );
    } catch (error) {
      log(error);
    }
  }

  /** Sends a frame. Returns its size in bytes, for a large frame once it is sent. */
  #sendFrame(served: ServedCall, frame: Frame): number | Promise<number> {
    served.silence = 0;
    const sent = this.#outbox.send(served.sender, frame);
    served.isSending = typeof sent !== "number";
    return sent;
  }

  /** Handles a message of the caller, or the server's message that the caller has no subscription. */
  #control(message: Msg): void {
    const id = message.subject.slice(this.#controlPrefix.length);
    const served = this.#running.get(id);
    if (served === undefined) return;
    if (message.data.byteLength === 0 && message.headers?.code === 503) {
      return this.#abort(served, "The caller does not respond");
    }
    const { link } = this.#settings;
    const part = protocol.openPart(link.seal, message);
    if (part === undefined) return link.logForged("A message to a call has a wrong signature");
    // A gap is allowed, because the messages are independent.
    if (part.sequence < served.nextControl) return;
    served.nextControl = part.sequence + 1;
    const control = parseJson(part.bytes) as protocol.Control;
    if ("go" in control) return served.begin?.();
    if ("abort" in control) return this.#abort(served, String(control.abort));
    const granted = Number(control.granted ?? served.granted + control.credit);
    // The comparison is false for NaN, which would remove the limit.
    if (!(granted > served.granted)) return;
    served.credit += granted - served.granted;
    served.granted = granted;
    served.onCredit();
  }

  /** Sends heartbeats of silent calls, and drops old ids. */
  #tick(): void {
    this.#lastTick = this.#clock.now();
    this.#stopTicking = this.#clock.setTimeout(() => {
      const now = this.#clock.now();
      const wasStopped = now - this.#lastTick > STALL_MS;
      if (wasStopped) this.#settledAt = now + SETTLE_MS;
      this.#tick();
      for (const served of this.#running.values()) {
        served.silence++;
        if (served.begin !== undefined) {
          if (served.silence >= protocol.TICKS_TO_LOSE) {
            this.#abort(served, "The caller does not respond");
          }
          continue;
        }
        // If the process was stopped, callers have waited longer than `silence` counts.
        if (served.silence < protocol.TICKS_TO_BEAT && !wasStopped) continue;
        // The parts of a large message are heartbeats too.
        if (served.sender.hasMoreParts) continue;
        served.silence = 0;
        const beat: Frame = { type: "beat" };
        callHook(() => served.sender.send(beat), this.#settings.link.log);
      }
      for (const [reply, partial] of this.#partial) {
        if (++partial.silence > protocol.TICKS_TO_LOSE) this.#forget(reply);
      }
      if (++this.#ticks < TICKS_TO_FORGET) return;
      this.#ticks = 0;
      this.#seenBefore = this.#seen;
      this.#seen = new Set();
    }, protocol.TICK_MS);
  }
}
