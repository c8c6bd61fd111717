/**
 * The worker's side of durable calls: fetches them from the stream, claims and runs them, and writes
 * their results. A call is acknowledged once its result is in the store.
 *
 * @module
 */

import {
  AckPolicy,
  type Consumer,
  type ConsumerMessages,
  jetstream,
  type JsMsg,
} from "@nats-io/jetstream";
import { nanos, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { createHash } from "node:crypto";
import type { ToolDispatcher } from "../../execute/mod.ts";
import {
  callHook,
  type HookLog,
  systemClock,
  type Tool,
  type ToolContext,
  type ToolFailure,
  ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import { MAX_SKEW_MS } from "./frames.ts";
import type { Seal } from "./seal.ts";
import {
  isDurable,
  isRunMessage,
  RUN_CONTROL,
  type RunMessage,
  type RunNews,
  type RunRecord,
  Runs,
} from "./runs.ts";
import { isRefused } from "./server.ts";
import { KEPT_MS, type StorageSettings } from "./streams.ts";
import { ownedRunSubject, RUNS_STREAM } from "./subjects.ts";
import { traceOf } from "./options.ts";

/** Settings of {@linkcode DurableWorker}. */
export interface DurableWorkerSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly worker: string;
  readonly dispatcher: ToolDispatcher;
  /** The duration of a lease without renewal, in milliseconds. */
  readonly leaseMs: number;
  /** The maximum number of concurrent calls. */
  readonly concurrency: number;
  /** The maximum number of concurrent calls of a tool, by its id. */
  readonly toolConcurrency: Readonly<Record<string, number>>;
  /** Is called for each call that fails. */
  readonly failed: (tool: Tool, failure: ToolFailure) => void;
  readonly log: HookLog;
  readonly storage?: StorageSettings;
}

/** The number of leases after whose expiry a call is given up. */
const MAX_LOST_LEASES = 5;
/** The delay of a call that cannot run now, and of a failed consumer, in milliseconds. */
const AGAIN_MS = 1_000;
/** The maximum delay of a call that workers reject, unless its tool names a longer one, in milliseconds. */
const LONGEST_DELAY_MS = 8_000;
/** The pause of a worker whose clock is wrong, in milliseconds. */
const CLOCK_PAUSE_MS = 5_000;
/** The maximum number of unacknowledged calls of a tool, on all workers together. */
const MAX_UNACKNOWLEDGED = 65_536;
/** The duration of a fetch, in milliseconds. Half of it without a heartbeat is a failure. */
const PULL_MS = 10_000;
/** The service with the number of the attempt. */
const ATTEMPT = "plue:attempt";

/**
 * Returns the number of the current attempt at a durable call, which is higher for each later attempt,
 * including those of other processes. Pass it on with each write, as a fencing token: the receiver can
 * then reject the writes of an older attempt.
 *
 * @returns The number; `undefined` for a call that is not durable.
 *
 * @example Usage
 * ```ts ignore
 * execute: async ({ order }, context) => await pay(order, { fence: attemptOf(context) }),
 * ```
 */
export function attemptOf({ services }: Pick<ToolContext, "services">): number | undefined {
  const attempt = services[ATTEMPT];
  return typeof attempt === "number" ? attempt : undefined;
}

/** A tool whose calls are fetched. */
interface Consuming {
  tool: Tool;
  messages: ConsumerMessages | undefined;
}

/** A call in flight. */
interface RunningCall {
  /** The id of its tool. */
  readonly tool: string;
  readonly abort: AbortController;
}

/** Runs the durable calls of one worker. */
export class DurableWorker {
  readonly #settings: DurableWorkerSettings;
  #runs: Promise<Runs> | undefined;
  /** The tools, by the path of their definition without its digest. */
  readonly #consuming: Map<string, Consuming> = new Map();
  /** The calls in flight, by key. */
  readonly #running: Map<string, RunningCall> = new Map();
  /** Wakes the consumers that wait for a free slot. */
  #waiting: (() => void)[] = [];
  /** The number of reconnections. */
  #round = 0;
  /** The end of a pause because of a wrong clock. */
  #pausedUntil = 0;
  readonly #controls: Subscription;
  #isStopping = false;
  #onIdle: () => void = () => {};

  constructor(settings: DurableWorkerSettings) {
    this.#settings = settings;
    const { connection, seal, log } = settings;
    this.#controls = connection.subscribe(`${RUN_CONTROL}>`, {
      callback: (error, { subject, data }) => {
        if (error !== null) return log(error);
        const call = this.#running.get(subject.slice(RUN_CONTROL.length));
        if (call !== undefined && seal.unwrap(data, subject) !== undefined) {
          call.abort.abort(new DOMException("The call was aborted", "AbortError"));
        }
      },
    });
  }

  get running(): number {
    return this.#running.size;
  }

  /** @throws {Error} If a tool is durable, and the stream or its bucket cannot be opened. */
  async check(tools: Iterable<Tool>): Promise<void> {
    if ([...tools].some(isDurable)) await this.#open();
  }

  /** Fetches calls of these tools, by the paths of their definitions, and of no others. */
  follow(tools: ReadonlyMap<string, Tool>): void {
    // A waiting call outlives its definition: a newer one checks its arguments again.
    const wanted = new Map(
      [...tools].filter(([, tool]) => isDurable(tool) && tool.execute !== undefined)
        .map(([path, tool]) => [path.slice(0, path.lastIndexOf(".")), tool]),
    );
    for (const [name, { messages }] of this.#consuming) {
      if (wanted.has(name)) continue;
      this.#consuming.delete(name);
      messages?.stop();
    }
    for (const [name, tool] of wanted) {
      const consuming = this.#consuming.get(name);
      if (consuming !== undefined) consuming.tool = tool;
      else {
        const begun: Consuming = { tool, messages: undefined };
        this.#consuming.set(name, begun);
        void this.#consume(name, begun);
      }
    }
  }

  /** Restarts the consumers after a reconnection: the old ones may receive nothing. */
  reconnect(): void {
    this.#round++;
    for (const { messages } of this.#consuming.values()) messages?.stop();
  }

  /**
   * Stops fetching, and waits for the calls in flight.
   *
   * @param graceMs After this time, they are aborted. Other workers run idempotent ones again.
   */
  async drain(graceMs: number): Promise<void> {
    this.follow(new Map());
    this.#isStopping = true;
    if (this.#running.size > 0) {
      const idle = new Promise<void>((resolve) => this.#onIdle = resolve);
      const disarm = systemClock.setTimeout(() => {
        for (const { abort } of this.#running.values()) {
          abort.abort(new DOMException("the worker stops", "AbortError"));
        }
      }, graceMs);
      await idle;
      disarm();
    }
    this.#controls.unsubscribe();
  }

  #open(): Promise<Runs> {
    const { connection, seal, log, storage } = this.#settings;
    return this.#runs ??= Runs.open({ connection, seal, log, storage });
  }

  /** Fetches calls of a tool until the tool is no longer offered. */
  async #consume(name: string, consuming: Consuming): Promise<void> {
    const { connection, log } = this.#settings;
    const isWanted = (): boolean =>
      this.#consuming.get(name) === consuming && !connection.isClosed();
    while (isWanted()) {
      try {
        const round = this.#round;
        const consumer = await this.#openConsumer(name);
        while (isWanted() && round === this.#round) await this.#fetch(name, consuming, consumer);
      } catch (error) {
        this.#runs = undefined;
        if (isWanted() && !isSilence(error)) log(error);
      }
      if (isWanted()) await delay(AGAIN_MS);
    }
  }

  async #openConsumer(tool: string): Promise<Consumer> {
    const { manager } = await this.#open();
    // The name of a consumer must not contain dots.
    const filter = ownedRunSubject(`${tool}.*`, "*", "*");
    const name = createHash("sha256").update(filter).digest("base64url");
    await manager.consumers.add(RUNS_STREAM, {
      durable_name: name,
      filter_subject: filter,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(this.#settings.leaseMs),
      max_ack_pending: MAX_UNACKNOWLEDGED,
      inactive_threshold: nanos(KEPT_MS),
    });
    return await jetstream(this.#settings.connection).consumers.get(RUNS_STREAM, name);
  }

  /** Fetches as many calls as there are free slots: a call that waits here is lost to other workers. */
  async #fetch(name: string, consuming: Consuming, consumer: Consumer): Promise<void> {
    const pauseMs = this.#pausedUntil - systemClock.now();
    if (pauseMs > 0) return await delay(Math.min(pauseMs, AGAIN_MS));
    const free = this.#free(consuming.tool);
    if (free <= 0) return await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const messages = await consumer.fetch({ max_messages: free, expires: PULL_MS });
    if (this.#consuming.get(name) !== consuming) return messages.stop();
    consuming.messages = messages;
    for await (const message of messages) {
      const { tool } = consuming;
      // Calls of other tools may have started since.
      if (this.#consuming.get(name) === consuming && this.#free(tool) > 0) {
        void this.#take(message, tool);
      } else message.nak();
    }
  }

  /** Returns the number of calls of a tool that may start now. */
  #free({ id }: Tool): number {
    const { concurrency, toolConcurrency } = this.#settings;
    const most = Object.hasOwn(toolConcurrency, id) ? toolConcurrency[id] : undefined;
    const free = concurrency - this.#running.size;
    if (most === undefined) return free;
    const own = [...this.#running.values()].filter(({ tool }) => tool === id).length;
    return Math.min(free, most - own);
  }

  /** Wakes the consumers that wait for a free slot. */
  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #take(message: JsMsg, tool: Tool): Promise<void> {
    const { seal, log } = this.#settings;
    const call = seal.unwrap(message.data, message.subject);
    if (!isRunMessage(call)) {
      log(new Error("A durable call is damaged or has a wrong signature, and was not run"));
      return message.term();
    }
    const { key } = call;
    if (this.#isMistimed(message, call, tool)) return;
    // A second delivery to this worker: the first one acknowledges it.
    if (this.#running.has(key)) return;
    const abort = new AbortController();
    this.#running.set(key, { tool: tool.id, abort });
    try {
      await this.#claimAndRun(message, call, tool, abort);
    } catch (error) {
      log(error);
      if (isNoRoom(error)) {
        // The result cannot be stored, so the caller can only be notified now.
        const result = unkept(tool.id, "it may have run", "unknown");
        this.#tell(call, { type: "ended", result });
        callHook(() => message.term(), log);
      } else callHook(() => message.nak(AGAIN_MS), log);
    } finally {
      this.#running.delete(key);
      this.#wake();
      if (this.#running.size === 0) this.#onIdle();
    }
  }

  /** Ends a call whose caller's clock is ahead; returns it to the stream if this worker's is behind. */
  #isMistimed(message: JsMsg, call: RunMessage, tool: Tool): boolean {
    const { log } = this.#settings;
    const now = systemClock.timestamp();
    const storedAt = message.time.getTime();
    if (now - call.time > KEPT_MS) {
      message.term();
      return true;
    }
    const inSeconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;
    if (call.time - storedAt > MAX_SKEW_MS) {
      const ahead = inSeconds(call.time - storedAt);
      const why = `its caller's clock is ${ahead} ahead of the server's; nothing has run`;
      const result = ToolResult.error("unavailable", `Cannot call "${tool.id}": ${why}`, {
        ran: "no",
      });
      log(new Error(result.error.message));
      this.#tell(call, { type: "ended", result });
      message.term();
      return true;
    }
    if (storedAt - now <= MAX_SKEW_MS) return false;
    message.nak();
    if (systemClock.now() < this.#pausedUntil) return true;
    this.#pausedUntil = systemClock.now() + CLOCK_PAUSE_MS;
    const behind = inSeconds(storedAt - now);
    log(
      new Error(
        `Cannot run tasks: this machine's clock is ${behind} behind the server's; set it right`,
      ),
    );
    return true;
  }

  async #claimAndRun(
    message: JsMsg,
    call: RunMessage,
    tool: Tool,
    abort: AbortController,
  ): Promise<void> {
    const { worker, leaseMs } = this.#settings;
    const { key } = call;
    const runs = await this.#open();
    const found = await runs.read(key);
    const { record } = found ?? {};
    if (record?.state === "done") return this.#finish(message, call);
    const until = record?.state === "claimed" ? record.until : 0;
    const left = until - systemClock.timestamp();
    if (left > 0) return message.nak(Math.min(left, leaseMs));
    // An expired lease: its worker has died, and may have run the tool.
    const isLost = record?.state === "claimed";
    const lostLeases = (record?.lostLeases ?? 0) + (isLost ? 1 : 0);
    if (isLost && (lostLeases >= MAX_LOST_LEASES || !tool.idempotent)) {
      const why = tool.idempotent
        ? `${MAX_LOST_LEASES} workers have ended while they ran it`
        : "its worker ended before it did; it may have run";
      const result = ToolResult.error("unavailable", `Cannot call "${tool.id}": ${why}`, {
        ran: "unknown",
      });
      await runs.write(key, { state: "done", result }, found?.revision ?? 0);
      // The caller may have ended, so the operator is notified too.
      this.#settings.log(new Error(`${result.error.message} (task "${key}")`));
      this.#settings.failed(tool, result);
      return this.#finish(message, call);
    }
    const lease = (): RunRecord => {
      const until = systemClock.timestamp() + leaseMs;
      return { state: "claimed", worker, until, lostLeases };
    };
    let revision: number | undefined;
    try {
      revision = await runs.write(key, lease(), found?.revision ?? 0);
    } catch (error) {
      if (!isNoRoom(error)) throw error;
      this.#settings.log(error);
      const why = "nothing more is kept for its caller now; nothing has run";
      const result = ToolResult.error("overloaded", `Cannot call "${tool.id}": ${why}`, {
        ran: "no",
      });
      this.#tell(call, { type: "ended", result });
      return message.term();
    }
    if (revision === undefined) return message.nak(AGAIN_MS);
    const attempt = revision;

    // Writes are serialized, since each needs the revision of the previous one.
    let turn: Promise<unknown> = Promise.resolve();
    const write = (next: () => RunRecord): Promise<boolean> => {
      const written = turn.then(async () => {
        if (revision !== undefined) revision = await runs.write(key, next(), revision);
        return revision !== undefined;
      });
      turn = written.catch(() => {});
      return written;
    };
    let disarm = (): void => {};
    const renew = (): void => {
      disarm = systemClock.setTimeout(() => {
        renew();
        callHook(() => message.working(), this.#settings.log);
        write(lease).then((isMine) => {
          if (!isMine) abort.abort(new DOMException("Another worker runs the call", "AbortError"));
        }, this.#settings.log);
      }, leaseMs / 3);
    };
    renew();
    let result: ToolResult;
    try {
      result = await this.#run(call, tool, attempt, abort.signal);
    } finally {
      disarm();
    }
    if (!result.ok) this.#settings.failed(tool, result);
    const { code, retryAfterMs = 0 } = result.ok ? {} : result.error;
    const isCutOff = this.#isStopping && code === "aborted" && tool.idempotent;
    // A ticket can be used once.
    if (call.ticket === undefined && (code === "overloaded" || isCutOff)) {
      // A worker takes it later. No lease has expired.
      const before = record?.state === "waiting" ? record.refusals : 0;
      const refusals = isCutOff ? before : before + 1;
      await write(() => ({ state: "waiting", lostLeases, refusals }));
      return message.nak(isCutOff ? 0 : delayOf(refusals, retryAfterMs));
    }
    await this.#commit(message, tool, result, async (done) => {
      await write(() => ({ state: "done", result: done }));
    });
    // Even if another run has written the result: there is one.
    await this.#finish(message, call);
  }

  /** Writes the result, again while the server is down. A result that it rejects becomes a failure. */
  async #commit(
    message: JsMsg,
    { id }: Tool,
    result: ToolResult,
    write: (result: ToolResult) => Promise<void>,
  ): Promise<void> {
    const { connection, log } = this.#settings;
    let done = result;
    for (;;) {
      try {
        await write(done);
        return;
      } catch (error) {
        if (connection.isClosed()) throw error;
        log(error);
        const isTooLarge = error instanceof RangeError;
        if (isTooLarge || isRefused(error)) {
          if (done !== result) throw error;
          done = isTooLarge
            ? ToolResult.error(
              "output_too_large",
              `Cannot call "${id}": its result is not kept (${error.message}); it has run`,
              { ran: "yes" },
            )
            : unkept(id, "it has run", "yes");
        } else {
          callHook(() => message.working(), log);
          await delay(AGAIN_MS);
        }
      }
    }
  }

  /** Acknowledges a call, and notifies its caller. */
  async #finish(message: JsMsg, call: RunMessage): Promise<void> {
    this.#tell(call, { type: "done" });
    const { record } = await (await this.#runs)?.read(call.key) ?? {};
    // A run without the claim leaves the message to the run that has the claim.
    if (record?.state === "done") message.ack();
  }

  async #run(
    call: RunMessage,
    tool: Tool,
    attempt: number,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const { sessionId, messageId, principal, context } = call;
    const request = call.ticket === undefined
      ? { name: tool.id, arguments: call.arguments, callId: call.callId }
      : { name: tool.id, ticket: call.ticket, answers: call.answers ?? {} };
    return await this.#settings.dispatcher.dispatch(request, {
      ...{ signal, sessionId, messageId, principal, context },
      trace: traceOf(call.trace),
      services: { [ATTEMPT]: attempt },
      metadata: (value) => this.#tell(call, { type: "metadata", value }),
      progress: (progress) => this.#tell(call, { type: "progress", progress }),
      ...(call.mute === true && { onQuestion: () => null }),
    });
  }

  #tell({ inbox }: RunMessage, news: RunNews): void {
    const { connection, seal, log } = this.#settings;
    callHook(() => connection.publish(inbox, seal.wrap(news, inbox)), log);
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimeout(resolve, ms));
}

/** Returns the delay of a call after so many rejections, in milliseconds. */
function delayOf(refusals: number, retryAfterMs: number): number {
  const backoffMs = AGAIN_MS * 2 ** Math.min(refusals - 1, 16);
  return Math.min(Math.max(retryAfterMs, Math.min(backoffMs, LONGEST_DELAY_MS)), KEPT_MS);
}

/** True if a fetch received no heartbeats, as while the server is down. */
function isSilence(error: unknown): boolean {
  return error instanceof Error && error.message === "heartbeats missed";
}

/** True if the store has no space for a write. */
function isNoRoom(error: unknown): boolean {
  return isRefused(error) || error instanceof RangeError;
}

function unkept(id: string, whether: string, ran: ToolRun): ToolFailure {
  const why = "the server cannot keep its result";
  // The call has or may have run, so that a repetition could run it twice.
  return ToolResult.error("unavailable", `Cannot call "${id}": ${why}; ${whether}`, { ran });
}
