/**
 * The worker's side of durable calls: fetches them from the stream, claims and runs them, and writes
 * their results. A call is acknowledged once its result is in the store.
 */

import type { Subscription } from "@nats-io/nats-core";
import { notStored } from "../../execute/durable/mod.ts";
import { failure, type ToolDispatcher } from "../../execute/mod.ts";
import {
  callHook,
  describeThrown,
  sleep,
  systemClock,
  type Tool,
  type ToolContext,
  type ToolFailure,
  type ToolResult,
} from "../../tool/mod.ts";
import { contextOf, MAX_SKEW_MS, requestOf } from "./protocol.ts";
import * as stored from "./runs.ts";
import { AGAIN_MS, type Delivery } from "./runs.ts";
import { afterMiss, unavailable } from "./remote_calls.ts";
import { isRefused, KEPT_MS } from "./streams.ts";
import type { Link } from "./link.ts";

export interface DurableWorkerSettings {
  readonly link: Link;
  readonly dispatcher: ToolDispatcher;
  readonly leaseMs: number;
  readonly concurrency: number;
  readonly toolConcurrency: Readonly<Record<string, number>>;
}

/** The maximum delay of a call that workers reject, in milliseconds. A tool may set a longer one. */
const LONGEST_DELAY_MS = 8_000;
const CLOCK_PAUSE_MS = 5_000;
const ATTEMPT = "plue:attempt";

/**
 * Returns the number of the current attempt at a durable call, which is higher for each later
 * attempt, including attempts of other processes. Send the number with each write, as a fencing
 * token: the receiver can then reject the writes of an older attempt.
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

interface Consuming {
  tool: Tool;
  queue: stored.RunQueue | undefined;
}

interface RunningCall {
  readonly tool: string;
  readonly signal: AbortSignal;
  abort(why: string): void;
}

export class DurableWorker {
  readonly #settings: DurableWorkerSettings;
  #runs: Promise<stored.Runs> | undefined;
  /** The tools, by the path of their definition without its digest. */
  readonly #consuming: Map<string, Consuming> = new Map();
  readonly #running: Map<string, RunningCall> = new Map();
  /** Wakes the consumers that wait for a free slot. */
  #waiting: (() => void)[] = [];
  #round = 0;
  #pausedUntil = 0;
  readonly #controls: Subscription;
  #isStopping = false;
  /** True if the time to store results, while the worker stops, is over. */
  #isOver = false;
  #onIdle: () => void = () => {};

  constructor(settings: DurableWorkerSettings) {
    this.#settings = settings;
    const { link } = settings;
    this.#controls = link.listen(`${stored.RUN_CONTROL}>`, ({ subject, data }) => {
      const call = this.#running.get(subject.slice(stored.RUN_CONTROL.length));
      if (call !== undefined && link.seal.unwrap(data, subject) !== undefined) {
        call.abort("The call was aborted");
      }
    });
    link.follow({
      // After a reconnection, the old consumers may no longer receive messages.
      up: () => {
        this.#round++;
        for (const { queue } of this.#consuming.values()) queue?.stop();
      },
    });
  }

  get running(): number {
    return this.#running.size;
  }

  /** @throws {Error} If a tool is durable, and the stream or its bucket cannot be opened. */
  async check(tools: Iterable<Tool>): Promise<void> {
    if ([...tools].some(stored.isDurable)) await this.#open();
  }

  /** Fetches only calls of these tools. The keys are the paths of the definitions. */
  follow(tools: ReadonlyMap<string, Tool>): void {
    // Calls of an older definition are fetched too: the newer one checks their arguments again.
    const wanted = new Map(
      [...tools].filter(([, tool]) => stored.isDurable(tool) && tool.execute !== undefined)
        .map(([path, tool]) => [path.slice(0, path.lastIndexOf(".")), tool]),
    );
    for (const [name, { queue }] of this.#consuming) {
      if (wanted.has(name)) continue;
      this.#consuming.delete(name);
      queue?.stop();
    }
    for (const [name, tool] of wanted) {
      const consuming = this.#consuming.get(name);
      if (consuming !== undefined) consuming.tool = tool;
      else {
        const begun: Consuming = { tool, queue: undefined };
        this.#consuming.set(name, begun);
        void this.#consume(name, begun);
      }
    }
  }

  /** Stops fetching, and waits for the calls in flight, which are aborted after `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.follow(new Map());
    this.#isStopping = true;
    if (this.#running.size > 0) {
      const idle = new Promise<void>((resolve) => this.#onIdle = resolve);
      const disarm = systemClock.setTimeout(() => {
        this.#isOver = true;
        for (const { abort } of this.#running.values()) abort("the worker stops");
      }, graceMs);
      await idle;
      disarm();
    }
    this.#controls.unsubscribe();
  }

  #open(): Promise<stored.Runs> {
    const { link, leaseMs } = this.#settings;
    return this.#runs ??= stored.Runs.open(link, { leaseMs, isOver: () => this.#isOver });
  }

  /** Fetches calls of a tool until the tool is no longer offered. */
  async #consume(name: string, consuming: Consuming): Promise<void> {
    const { connection, log } = this.#settings.link;
    const isWanted = (): boolean =>
      this.#consuming.get(name) === consuming && !connection.isClosed();
    while (isWanted()) {
      try {
        const round = this.#round;
        const queue = consuming.queue = await (await this.#open()).openQueue(name);
        while (isWanted() && round === this.#round) await this.#fetch(name, consuming, queue);
      } catch (error) {
        this.#runs = undefined;
        if (isWanted() && !isSilence(error)) log(error);
      }
      if (isWanted()) await sleep(AGAIN_MS);
    }
  }

  /** Fetches only as many calls as there are free slots: other calls must not wait in this process. */
  async #fetch(name: string, consuming: Consuming, queue: stored.RunQueue): Promise<void> {
    const pauseMs = this.#pausedUntil - systemClock.now();
    if (pauseMs > 0) return await sleep(Math.min(pauseMs, AGAIN_MS));
    const free = this.#free(consuming.tool);
    if (free <= 0) return await new Promise<void>((resolve) => this.#waiting.push(resolve));
    for await (const delivery of queue.fetch(free)) {
      const { tool } = consuming;
      // Checks again, because calls of other tools may have used the slots.
      if (this.#consuming.get(name) === consuming && this.#free(tool) > 0) {
        void this.#take(delivery, tool);
      } else delivery.retry(0);
    }
  }

  #free({ id }: Tool): number {
    const { concurrency, toolConcurrency } = this.#settings;
    const most = Object.hasOwn(toolConcurrency, id) ? toolConcurrency[id] : undefined;
    const free = concurrency - this.#running.size;
    if (most === undefined) return free;
    const own = [...this.#running.values()].filter(({ tool }) => tool === id).length;
    return Math.min(free, most - own);
  }

  async #take(delivery: Delivery, tool: Tool): Promise<void> {
    const { log } = this.#settings.link;
    const { call, call: { id: key } } = delivery;
    if (this.#isMistimed(delivery, tool)) return;
    // The worker already runs this call. It acknowledges the first delivery at the end.
    if (this.#running.has(key)) return;
    const controller = new AbortController();
    const running: RunningCall = {
      ...{ tool: tool.id, signal: controller.signal },
      abort: (why) => controller.abort(new DOMException(why, "AbortError")),
    };
    this.#running.set(key, running);
    try {
      await this.#claimAndRun(delivery, tool, running);
    } catch (error) {
      log(error);
      const isSkewed = /the clock of this machine/.test(describeThrown(error));
      if (isSkewed) this.#pausedUntil = systemClock.now() + CLOCK_PAUSE_MS;
      if (hasNoRoom(error)) {
        // The result cannot be stored, so the caller can only be notified now.
        const result = notStored(tool.id, "it may have run", "unknown");
        this.#tell(call, { type: "ended", result });
        callHook(() => delivery.ack(), log);
      } else callHook(() => delivery.retry(AGAIN_MS), log);
    } finally {
      this.#running.delete(key);
      for (const wake of this.#waiting.splice(0)) wake();
      if (this.#running.size === 0) this.#onIdle();
    }
  }

  /** Ends a call if the caller's clock is wrong; returns it to the stream if this clock is wrong. */
  #isMistimed(delivery: Delivery, { id }: Tool): boolean {
    const { call, storedAt, ack, retry } = delivery;
    const { log } = this.#settings.link;
    const now = systemClock.timestamp();
    // A call that was sent again after its lifetime must not run, because its record may have
    // expired. If the call also seems too old in the stream, this machine's clock is wrong.
    const isOld = now - call.time > KEPT_MS && now - storedAt <= KEPT_MS;
    if (isOld) {
      this.#settings.link.logForged("A task was not run: its timestamp is more than a day old");
      ack();
      return true;
    }
    const inSeconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;
    if (call.time - storedAt > MAX_SKEW_MS) {
      const ahead = inSeconds(call.time - storedAt);
      const why = `the caller's clock is ${ahead} ahead of the NATS server's; nothing has run`;
      const result = unavailable(id, why, "no");
      log(new Error(result.error.message));
      void this.#endMistimed(delivery, result);
      return true;
    }
    // The server drops calls after KEPT_MS. If a call seems older, this machine's clock is ahead.
    const isAhead = now - storedAt > KEPT_MS + MAX_SKEW_MS;
    if (!isAhead && storedAt - now <= MAX_SKEW_MS) return false;
    retry(0);
    if (systemClock.now() < this.#pausedUntil) return true;
    this.#pausedUntil = systemClock.now() + CLOCK_PAUSE_MS;
    const skew = isAhead
      ? `at least ${inSeconds(now - storedAt - KEPT_MS)} ahead of`
      : `${inSeconds(storedAt - now)} behind`;
    log(new Error(`Cannot run tasks: this machine's clock is ${skew} the server's; correct it`));
    return true;
  }

  /** Reports that a call was not run, unless a worker has claimed a copy of the call. */
  async #endMistimed({ call, ack, retry }: Delivery, result: ToolFailure): Promise<void> {
    const { log } = this.#settings.link;
    try {
      const { records } = await this.#open();
      const isTaken = await records.read(call.id) !== undefined;
      this.#tell(call, isTaken ? { type: "done" } : { type: "ended", result });
      ack();
    } catch (error) {
      log(error);
      callHook(() => retry(AGAIN_MS), log);
    }
  }

  async #claimAndRun(
    delivery: Delivery,
    tool: Tool,
    { signal, abort }: RunningCall,
  ): Promise<void> {
    const { log } = this.#settings.link;
    const { call, call: { id: key } } = delivery;
    const { records, engine } = await this.#open();
    let claimed: Awaited<ReturnType<typeof engine.claim>>;
    try {
      claimed = await engine.claim(key, tool.id, tool.idempotent, stored.NEW_RUN);
    } catch (error) {
      const { record = stored.NEW_RUN } = hasNoRoom(error) ? await records.read(key) ?? {} : {};
      if (!hasNoRoom(error) || record.attempts > 0 || record.hasRun === true) throw error;
      log(error);
      const why = "the stored data of this principal has used up its quota; nothing has run";
      const result = failure("overloaded", tool.id, why, { ran: "no" });
      this.#tell(call, { type: "ended", result });
      return delivery.ack();
    }
    const { lease, record: { result: ended, heldUntil } = stored.NEW_RUN, died } = claimed;
    if (lease === undefined) {
      // Logged as well, because the caller may have disconnected.
      if (ended?.ok === false && died) log(new Error(`${ended.error.message} (task "${key}")`));
      if (ended !== undefined) return this.#finish(delivery);
      const freeAt = heldUntil + MAX_SKEW_MS;
      return delivery.retry(Math.max(0, freeAt - systemClock.timestamp()));
    }

    /** The delay of a call that has not run, and returns to the stream. */
    let delayMs: number | undefined;
    const end = (record: stored.StoredRun, result: ToolResult): stored.StoredRun => {
      const { code, retryAfterMs = 0, ran } = result.ok ? {} : result.error;
      const isCutOff = this.#isStopping && code === "aborted" && tool.idempotent;
      // If nothing has run, the ticket is valid again, so the call can be returned.
      const isReturned = (code === "overloaded" || isCutOff) &&
        (call.ticket === undefined || ran === "no" || tool.idempotent);
      delayMs = undefined;
      if (!isReturned) {
        const mayHaveRun = record.attempts > 1 || record.hasRun === true;
        return { ...record, holder: "", result: afterMiss(result, mayHaveRun) };
      }
      const refusals = isCutOff ? record.refusals : record.refusals + 1;
      delayMs = isCutOff ? 0 : delayOf(refusals, retryAfterMs);
      const hasRun = record.hasRun === true || (isCutOff && ran !== "no");
      return { ...record, holder: "", attempts: record.attempts - 1, refusals, hasRun };
    };
    const context = contextOf(call, tool, key);
    const { token: attempt } = lease;
    let count = 0;
    const result = this.#settings.dispatcher.dispatch(requestOf(call, tool), {
      ...{ ...context, signal, services: { ...context.services, [ATTEMPT]: attempt } },
      metadata: (value) => this.#tell(call, { type: "metadata", value, attempt, count: ++count }),
      progress: (progress) =>
        this.#tell(call, { type: "progress", progress, attempt, count: ++count }),
    });
    const run = { result, abort: () => abort("Another worker runs the call") };
    const isMine = await engine.keep(lease, tool.id, run, end, delivery.extend);
    if (isMine && delayMs !== undefined) return delivery.retry(delayMs);
    // Acknowledges the call even if another run has written the result: a result exists.
    if (isMine) return this.#finish(delivery);
    const found = await records.read(key);
    // Another run has the lease, and ends the task.
    if (found?.record.result !== undefined) delivery.ack();
    const settled = await result;
    const { acknowledged, ran } = settled.ok ? {} : settled.error;
    if (acknowledged !== false) this.#tell(call, { type: "stopped", ran });
  }

  #finish({ call, ack }: Delivery): void {
    this.#tell(call, { type: "done" });
    ack();
  }

  #tell({ inbox, id: key }: stored.RunMessage, news: stored.RunNews): void {
    this.#settings.link.publish(inbox, { ...news, key });
  }
}

function delayOf(refusals: number, retryAfterMs: number): number {
  const backoffMs = AGAIN_MS * 2 ** Math.min(refusals - 1, 16);
  return Math.min(Math.max(retryAfterMs, Math.min(backoffMs, LONGEST_DELAY_MS)), KEPT_MS);
}

/** True if a fetch received no heartbeats, which happens while the server is down. */
function isSilence(error: unknown): boolean {
  return error instanceof Error && error.message === "heartbeats missed";
}

function hasNoRoom(error: unknown): boolean {
  return isRefused(error) || error instanceof RangeError;
}
