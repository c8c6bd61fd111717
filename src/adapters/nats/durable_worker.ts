/**
 * The worker's side of durable calls: takes them from the stream, claims them, runs them, and writes
 * their results. A call is taken off the stream only when its result is in the store.
 *
 * @module
 */

import { AckPolicy, type ConsumerMessages, jetstream, type JsMsg } from "@nats-io/jetstream";
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
import type { Seal } from "./message.ts";
import {
  isDurable,
  isRunMessage,
  KEPT_MS,
  RUN_CONTROL,
  type RunMessage,
  type RunNews,
  type RunRecord,
  Runs,
} from "./runs.ts";
import { isRefused } from "./server.ts";
import { RUNS_STREAM, runSubject } from "./subjects.ts";
import { traceOf } from "./telemetry.ts";

/** What durable calls are run with. */
export interface DurableWorkerSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly worker: string;
  readonly dispatcher: ToolDispatcher;
  /** How long a worker holds a call without renewing that, in milliseconds. */
  readonly leaseMs: number;
  /** Is told of each call that fails. */
  readonly failed: (tool: Tool, failure: ToolFailure) => void;
  readonly log: HookLog;
}

/** How many durable calls one worker runs at once. */
const MAX_RUNNING = 64;
/** How many workers may die of a call. */
const MAX_ATTEMPTS = 5;
/** How long a call waits that cannot be run now, and a consumer that has failed, in milliseconds. */
const AGAIN_MS = 1_000;
/** How long a consumer asks for calls, in milliseconds. Half of it without a word is a silence. */
const PULL_MS = 10_000;
/** The service by which a tool is told its attempt. */
const ATTEMPT = "plue:attempt";

/**
 * Which attempt at a durable call this is: a number that is higher for each later one, also in another
 * process. A tool that hands it on with what it writes can have an older attempt refused.
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

/** Runs the durable calls of one worker. */
export class DurableWorker {
  readonly #settings: DurableWorkerSettings;
  #runs: Promise<Runs> | undefined;
  /** By what the paths of their definitions begin with. */
  readonly #consuming: Map<string, { tool: Tool; messages: ConsumerMessages | undefined }> =
    new Map();
  readonly #running: Map<string, AbortController> = new Map();
  /** Those who wait for a place. */
  readonly #queue: (() => void)[] = [];
  readonly #controls: Subscription;
  #isStopping = false;
  #onIdle: () => void = () => {};

  constructor(settings: DurableWorkerSettings) {
    this.#settings = settings;
    const { connection, seal, log } = settings;
    this.#controls = connection.subscribe(`${RUN_CONTROL}>`, {
      callback: (error, { subject, data }) => {
        if (error !== null) return log(error);
        const abort = this.#running.get(subject.slice(RUN_CONTROL.length));
        if (abort !== undefined && seal.unwrap(data, subject) !== undefined) {
          abort.abort(new DOMException("The call was aborted", "AbortError"));
        }
      },
    });
  }

  get running(): number {
    return this.#running.size;
  }

  /** @throws {Error} If the server cannot keep durable calls. */
  async check(tools: Iterable<Tool>): Promise<void> {
    if ([...tools].some(isDurable)) await this.#open();
  }

  /** Takes calls of these tools, by the paths of their definitions, and of no others. */
  follow(tools: ReadonlyMap<string, Tool>): void {
    // A call that waits outlives its definition: the next one takes it, and checks it again.
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
        this.#consuming.set(name, { tool, messages: undefined });
        void this.#consume(name);
      }
    }
  }

  /** The connection is there again: consumers of before may be silent. */
  reconnect(): void {
    for (const { messages } of this.#consuming.values()) messages?.stop();
  }

  /**
   * Takes no more calls, and waits for those that run.
   *
   * @param graceMs How long to wait. Then they are aborted; others run those that may be repeated.
   */
  async drain(graceMs: number): Promise<void> {
    this.follow(new Map());
    this.#isStopping = true;
    if (this.#running.size > 0) {
      const idle = new Promise<void>((resolve) => this.#onIdle = resolve);
      const disarm = systemClock.setTimeout(() => {
        for (const abort of this.#running.values()) {
          abort.abort(new DOMException("the worker stops", "AbortError"));
        }
      }, graceMs);
      await idle;
      disarm();
    }
    this.#controls.unsubscribe();
  }

  #open(): Promise<Runs> {
    const { connection, seal, log } = this.#settings;
    return this.#runs ??= Runs.open(connection, seal, log);
  }

  /** Takes calls of one tool until it is not offered any more. */
  async #consume(tool: string): Promise<void> {
    const { connection, log } = this.#settings;
    const isWanted = (): boolean => this.#consuming.has(tool) && !connection.isClosed();
    while (isWanted()) {
      try {
        const { manager } = await this.#open();
        // The name of a consumer can have no dots.
        const name = createHash("sha256").update(tool).digest("base64url");
        await manager.consumers.add(RUNS_STREAM, {
          durable_name: name,
          filter_subject: runSubject(`${tool}.*`),
          ack_policy: AckPolicy.Explicit,
          ack_wait: nanos(this.#settings.leaseMs),
          inactive_threshold: nanos(KEPT_MS),
        });
        const consumer = await jetstream(connection).consumers.get(RUNS_STREAM, name);
        const messages = await consumer.consume({
          max_messages: MAX_RUNNING,
          expires: PULL_MS,
        });
        const consuming = this.#consuming.get(tool);
        if (consuming === undefined) return void messages.stop();
        consuming.messages = messages;
        void this.#restartWhenSilent(messages);
        for await (const message of messages) {
          await this.#place();
          if (this.#consuming.has(tool)) void this.#take(message, consuming.tool);
          else message.nak();
        }
      } catch (error) {
        this.#runs = undefined;
        if (isWanted()) log(error);
      }
      if (isWanted()) {
        await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** A consumer may stall when the server was away: another one takes its place. */
  async #restartWhenSilent(messages: ConsumerMessages): Promise<void> {
    for await (const { type } of messages.status()) {
      if (type === "heartbeats_missed" || type === "consumer_deleted") messages.stop();
    }
  }

  /** Waits until fewer calls run than may. */
  async #place(): Promise<void> {
    while (this.#running.size >= MAX_RUNNING) {
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
  }

  async #take(message: JsMsg, tool: Tool): Promise<void> {
    const { seal, log } = this.#settings;
    const call = seal.unwrap(message.data, message.subject);
    if (!isRunMessage(call)) {
      log(new Error("A durable call is damaged or has a wrong signature, and was not run"));
      return message.term();
    }
    const { key, time } = call;
    const ageMs = systemClock.timestamp() - time;
    if (ageMs > KEPT_MS) return message.term();
    if (ageMs < -MAX_SKEW_MS) {
      const seconds = Math.round(-ageMs / 1_000);
      const why = `its caller's clock is ${seconds} s ahead of its worker's; nothing has run`;
      const result = ToolResult.error("unavailable", `Cannot call "${tool.id}": ${why}`, {
        ran: "no",
      });
      log(new Error(result.error.message));
      this.#tell(call, { type: "ended", result });
      return message.term();
    }
    // It was delivered here a second time: the first one answers.
    if (this.#running.has(key)) return;
    const abort = new AbortController();
    this.#running.set(key, abort);
    try {
      await this.#claimAndRun(message, call, tool, abort);
    } catch (error) {
      log(error);
      if (isNoRoom(error)) {
        // Its result cannot be kept: its caller hears of it now, or not at all.
        const result = unkept(tool.id, "it may have run", "unknown");
        this.#tell(call, { type: "ended", result });
        callHook(() => message.term(), log);
      } else callHook(() => message.nak(AGAIN_MS), log);
    } finally {
      this.#running.delete(key);
      this.#queue.shift()?.();
      if (this.#running.size === 0) this.#onIdle();
    }
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
    const left = (record?.until ?? 0) - systemClock.timestamp();
    if (left > 0) return message.nak(Math.min(left, leaseMs));
    const attempts = (record?.attempts ?? 0) + 1;
    // Its worker has died. Whether it has done its work is not known.
    const ended = record !== undefined && (attempts > MAX_ATTEMPTS || !tool.idempotent);
    if (ended) {
      const why = attempts > MAX_ATTEMPTS
        ? `${MAX_ATTEMPTS} workers have ended while they ran it`
        : "its worker ended before it did; it may have run";
      const result = ToolResult.error("unavailable", `Cannot call "${tool.id}": ${why}`, {
        ran: "unknown",
      });
      await runs.write(key, { state: "done", result }, found?.revision ?? 0);
      return this.#finish(message, call);
    }
    const claim = (until: number): RunRecord => ({ state: "claimed", worker, until, attempts });
    const lease = (): RunRecord => claim(systemClock.timestamp() + leaseMs);
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

    // Renewals and the result take turns, since each needs the revision of the one before.
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
    const { code } = result.ok ? {} : result.error;
    const isCutOff = this.#isStopping && code === "aborted" && tool.idempotent;
    if (code === "overloaded" || isCutOff) {
      // Another worker, or this one later.
      await write(() => claim(0));
      return message.nak(isCutOff ? 0 : AGAIN_MS);
    }
    await this.#commit(message, tool, result, async (done) => {
      await write(() => ({ state: "done", result: done }));
    });
    // Also if another run has written its own: what counts is that there is one.
    await this.#finish(message, call);
  }

  /** Writes the result. While the server is away, again; what it refuses becomes a failure. */
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
          await new Promise<void>((go) => void systemClock.setTimeout(go, AGAIN_MS));
        }
      }
    }
  }

  /** Takes a call off the stream, and tells its caller. */
  async #finish(message: JsMsg, call: RunMessage): Promise<void> {
    this.#tell(call, { type: "done" });
    const { record } = await (await this.#runs)?.read(call.key) ?? {};
    // A run that has lost its claim leaves the message to the one that has it.
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

/** Whether the store refuses to write, because there is no room for it. */
function isNoRoom(error: unknown): boolean {
  return isRefused(error) || error instanceof RangeError;
}

function unkept(id: string, whether: string, ran: ToolRun): ToolFailure {
  const why = "the server cannot keep its result";
  // It has ended, or may have, so that to call it again would run it twice.
  return ToolResult.error("unavailable", `Cannot call "${id}": ${why}; ${whether}`, { ran });
}
