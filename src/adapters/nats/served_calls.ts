/**
 * The worker's side of plain calls: takes them, runs them, and tells their callers.
 *
 * @module
 */

import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core";
import type { DispatchContext, ToolDispatcher, ToolEvent } from "../../execute/mod.ts";
import {
  type Clock,
  type HookLog,
  isObject,
  NO_LOG,
  systemClock,
  type Tool,
  type ToolFailure,
} from "../../tool/mod.ts";
import {
  type CallMessage,
  type Control,
  creditOf,
  FIRST_CREDIT,
  type Frame,
  MAX_AGE_MS,
  TICK_MS,
  TICKS_TO_BEAT,
  TICKS_TO_LOSE,
} from "./frames.ts";
import { GAP, logForged, openPart, Outbox, Receiver, Sender } from "./message.ts";
import type { Seal } from "./seal.ts";
import { callSubject, controlSubject } from "./subjects.ts";
import { traceOf } from "./options.ts";

/** What a worker runs calls with. */
export interface ServedCallsSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  /** Names the worker. Of a process that was started anew it is another one. */
  readonly worker: string;
  readonly dispatcher: ToolDispatcher;
  /** The tool that is served at a path. */
  readonly toolAt: (path: string) => Tool | undefined;
  /** Is told of each call that fails. */
  readonly failed: (tool: Tool, failure: ToolFailure) => void;
  readonly log: HookLog;
  /** Tells the time. @default {systemClock} */
  readonly clock?: Clock;
}

/** How many bytes are kept of calls that have come in part, and of what waits to be sent. */
const MAX_KEPT_BYTES = 134_217_728;
/** After a stop of the process so long, messages may be old. */
const STALL_MS = 3 * TICK_MS;
/** How long calls wait after a stop, for aborts that came meanwhile. */
const SETTLE_MS = 50;
/** How many ticks the ids of calls are remembered: longer than a call may be old, by any clock. */
const TICKS_TO_FORGET = 2 * MAX_AGE_MS / TICK_MS + 2;

/** A call that runs here, or waits for its caller to let it begin. */
interface ServedCall {
  readonly tool: Tool;
  readonly sender: Sender;
  readonly abort: AbortController;
  /** Puts the caller's words together. Each is taken once. */
  readonly controls: Receiver;
  /** Begins the call; `undefined` once that has happened. */
  begin: (() => void) | undefined;
  /** How many bytes of events may be sent. */
  credit: number;
  /** Called when there is credit again. */
  onCredit: () => void;
  /** How many ticks nothing was sent. */
  silence: number;
  /** Something large that it gave waits to be sent. */
  isSending: boolean;
}

/** A call whose parts are still coming. */
interface PartialCall {
  readonly receiver: Receiver;
  /** How many ticks no part came. */
  silence: number;
}

/** Takes the calls of one worker. */
export class ServedCalls {
  readonly #settings: ServedCallsSettings;
  readonly #clock: Clock;
  readonly #calls: Subscription;
  readonly #controls: Subscription;
  readonly #prefix: string;
  readonly #controlPrefix: string;
  readonly #outbox: Outbox;
  readonly #running: Map<string, ServedCall> = new Map();
  /** By where they are answered. */
  readonly #partial: Map<string, PartialCall> = new Map();
  #partialBytes = 0;
  /** The ids that came lately, and those before: none is taken twice. */
  #seen: Set<string> = new Set();
  #seenBefore: Set<string> = new Set();
  #ticks = 0;
  #lastTick: number;
  /** Until when calls wait, because the process was stopped. */
  #settledAt = 0;
  #stopTicking: () => void = () => {};
  #isDraining = false;
  #onIdle: () => void = () => {};
  /** Messages that were refused because their signature was wrong. */
  #forged = 0;

  constructor(settings: ServedCallsSettings) {
    this.#settings = settings;
    const { connection, worker, log, clock = systemClock } = settings;
    this.#clock = clock;
    this.#outbox = new Outbox(connection);
    this.#lastTick = clock.now();
    const listen = (subject: string, take: (message: Msg) => void): Subscription =>
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error !== null) return log(error);
          try {
            take(message);
          } catch (thrown) {
            log(thrown);
          }
        },
      });
    this.#prefix = callSubject(worker, "");
    this.#controlPrefix = controlSubject(worker, "");
    this.#controls = listen(`${this.#controlPrefix}*`, (message) => this.#control(message));
    this.#calls = listen(`${this.#prefix}>`, (message) => this.#take(message));
    this.#tick();
  }

  /** How many calls run here. */
  get running(): number {
    return this.#running.size;
  }

  /**
   * Takes no more calls, and waits for those that run.
   *
   * @param graceMs How long to wait. Then they are aborted.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    const { connection, log } = this.#settings;
    // Calls that are on their way are refused, so that another worker gets them at once.
    // A connection that closes meanwhile confirms nothing.
    const closed = connection.closed();
    if (!connection.isClosed()) await Promise.race([this.#calls.drain().catch(log), closed]);
    if (this.#running.size > 0) {
      const idle = new Promise<void>((resolve) => this.#onIdle = resolve);
      const disarm = this.#clock.setTimeout(() => this.abort("the worker stops"), graceMs);
      await idle;
      disarm();
    }
    this.#stopTicking();
    this.#controls.unsubscribe();
    // Without a server nothing is confirmed, and no error has to be told: the connection tells it.
    if (!connection.isClosed()) await Promise.race([connection.flush().catch(NO_LOG), closed]);
  }

  /** Aborts all calls. */
  abort(why: string): void {
    for (const served of [...this.#running.values()]) this.#abort(served, why);
  }

  /** Aborts a call. One that has not begun ends without its tool. */
  #abort(served: ServedCall, why: string): void {
    served.abort.abort(new DOMException(why, "AbortError"));
    served.begin?.();
    served.onCredit();
  }

  #take(message: Msg): void {
    const { connection, seal, log } = this.#settings;
    const { subject, reply } = message;
    const part = openPart(seal, message);
    if (part === undefined || reply === undefined) {
      return logForged(log, "A call has a wrong signature, and was not run", ++this.#forged);
    }
    const { receiver } = this.#forget(reply) ?? { receiver: new Receiver() };
    const call = receiver.take(part);
    if (isObject(call)) return this.#begin(subject, reply, call as unknown as CallMessage);
    if (call === GAP) return;
    if (this.#partialBytes + receiver.bytes > MAX_KEPT_BYTES) {
      const why = "the worker has no room for more calls that are so large";
      new Sender(connection, seal, reply).send({ type: "refused", why } satisfies Frame);
      return;
    }
    this.#partial.set(reply, { receiver, silence: 0 });
    this.#partialBytes += receiver.bytes;
  }

  /** Takes a call that has come in part out of the list. */
  #forget(reply: string): PartialCall | undefined {
    const partial = this.#partial.get(reply);
    if (partial === undefined) return undefined;
    this.#partial.delete(reply);
    this.#partialBytes -= partial.receiver.bytes;
    return partial;
  }

  #begin(subject: string, reply: string, call: CallMessage): void {
    const { connection, seal, worker, toolAt } = this.#settings;
    const { id } = call;
    if (this.#seen.has(id) || this.#seenBefore.has(id)) return;
    this.#seen.add(id);
    const sender = new Sender(connection, seal, reply, controlSubject(worker, id));
    const refuse = (why: string): void =>
      void sender.send({ type: "refused", why } satisfies Frame);
    const age = this.#clock.timestamp() - call.time;
    const tool = toolAt(subject.slice(this.#prefix.length));
    if (Math.abs(age) > MAX_AGE_MS) {
      const seconds = Math.round(Math.abs(age) / 1_000);
      return refuse(`it came ${seconds} s ${age > 0 ? "late" : "early"}, by the worker's clock`);
    }
    if (this.#isDraining || tool === undefined) {
      return refuse(this.#isDraining ? "the worker stops" : "the worker has no such tool");
    }
    if (this.#outbox.waiting > MAX_KEPT_BYTES && this.#isSending(tool)) {
      return refuse("the worker has no room for more of its results: large ones wait to be sent");
    }
    const run = (): void => {
      void this.#run(tool, call, served).catch(this.#settings.log).finally(() => {
        this.#running.delete(id);
        if (this.#running.size === 0) this.#onIdle();
      });
    };
    const served: ServedCall = {
      tool,
      sender,
      abort: new AbortController(),
      controls: new Receiver(),
      begin: () => {
        served.begin = undefined;
        // If the process was stopped, the caller may have given up, and its abort comes next.
        const now = this.#clock.now();
        const isSettled = now >= this.#settledAt && now - this.#lastTick <= STALL_MS;
        if (isSettled) run();
        else this.#clock.setTimeout(run, SETTLE_MS);
      },
      credit: FIRST_CREDIT,
      onCredit: () => {},
      silence: 0,
      isSending: false,
    };
    this.#running.set(id, served);
    // A tool that may not run twice begins when the caller has read `accepted` and answers. Until then
    // the caller may give the call to another worker, because it knows that nothing has run.
    if (tool.idempotent === true) served.begin?.();
    else void this.#say(served, { type: "accepted" });
  }

  /** Whether something large that a tool gave waits to be sent. */
  #isSending(tool: Tool): boolean {
    return [...this.#running.values()].some((served) => served.isSending && served.tool === tool);
  }

  async #run(tool: Tool, call: CallMessage, served: ServedCall): Promise<void> {
    const { dispatcher, log } = this.#settings;
    const { signal } = served.abort;
    const context: DispatchContext = {
      signal,
      sessionId: call.sessionId,
      messageId: call.messageId,
      trace: traceOf(call.trace),
      principal: call.principal,
      context: call.context,
      timeoutMs: call.timeoutMs,
      ...(call.mute === true && { onQuestion: () => null }),
    };
    const request = call.ticket === undefined
      ? { name: tool.id, arguments: call.arguments, callId: call.callId }
      : { name: tool.id, ticket: call.ticket, answers: call.answers ?? {} };
    let last: ToolEvent | undefined;
    for await (const event of dispatcher.stream(request, context)) {
      last = event;
      if (event.type === "result") break;
      while (served.credit <= 0 && !signal.aborted) {
        await new Promise<void>((resolve) => served.onCredit = resolve);
      }
      const { type } = event;
      const bytes = await this.#say(
        served,
        type === "progress" ? { type, progress: event.progress } : { type, value: event.value },
      );
      served.credit -= creditOf(bytes);
    }
    const { result } = last as Extract<ToolEvent, { readonly type: "result" }>;
    if (!result.ok) this.#settings.failed(tool, result);
    // There was no place for it, and others may have one. A ticket is good once.
    const isLeft = !result.ok && result.error.code === "overloaded" && call.ticket === undefined;
    try {
      await this.#say(
        served,
        isLeft
          ? { type: "refused", why: "the worker is overloaded", result }
          : { type: "result", result },
      );
    } catch (error) {
      log(error);
    }
  }

  /** Sends a frame. Gives its size in bytes, of a large one when it is sent. */
  #say(served: ServedCall, frame: Frame): number | Promise<number> {
    served.silence = 0;
    const sent = this.#outbox.send(served.sender, frame);
    served.isSending = typeof sent !== "number";
    return sent;
  }

  /** Takes what the caller says of a call, or what the server says: that the caller is gone. */
  #control(message: Msg): void {
    const id = message.subject.slice(this.#controlPrefix.length);
    const served = this.#running.get(id);
    if (served === undefined) return;
    if (message.data.byteLength === 0 && message.headers?.code === 503) {
      return this.#abort(served, "The caller is gone");
    }
    const part = openPart(this.#settings.seal, message);
    if (part === undefined) {
      const { log } = this.#settings;
      return logForged(log, "A message to a call has a wrong signature", ++this.#forged);
    }
    const given = served.controls.take(part);
    if (!isObject(given)) return;
    const control = given as unknown as Control;
    if ("go" in control) return served.begin?.();
    if ("abort" in control) return this.#abort(served, String(control.abort));
    served.credit += Number(control.credit) || 0;
    served.onCredit();
  }

  /** Says of calls that are silent that they still run, and forgets old ids. */
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
          if (served.silence >= TICKS_TO_LOSE) this.#abort(served, "The caller is gone");
          continue;
        }
        // After a stop, callers have heard nothing for longer than the ticks say.
        if (served.silence < TICKS_TO_BEAT && !wasStopped) continue;
        // Its parts say it too.
        if (served.sender.isAmid) continue;
        try {
          served.silence = 0;
          served.sender.send({ type: "beat" } satisfies Frame);
        } catch (error) {
          this.#settings.log(error);
        }
      }
      for (const [reply, partial] of this.#partial) {
        if (++partial.silence > TICKS_TO_LOSE) this.#forget(reply);
      }
      if (++this.#ticks < TICKS_TO_FORGET) return;
      this.#ticks = 0;
      this.#seenBefore = this.#seen;
      this.#seen = new Set();
    }, TICK_MS);
  }
}
