/** The caller's side of durable calls: stores calls in the stream, and waits for their results. */

import { JetStreamApiError } from "@nats-io/jetstream";
import { createInbox, nuid, type Subscription } from "@nats-io/nats-core";
import {
  isObject,
  isSuspended,
  systemClock,
  type ToolContext,
  ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import { CallContext, failure } from "../../execute/mod.ts";
import { MEASURED_AFTER_MS, Quotas } from "../../execute/durable/mod.ts";
import type { Link } from "./link.ts";
import { aborted, adopt, type RemoteCall, unavailable } from "./remote_calls.ts";
import * as stored from "./runs.ts";
import { Runs } from "./runs.ts";
import { isRefused, problemOf } from "./streams.ts";

/** The delay of the first read of the store, in case the worker's message was lost. It doubles each time. */
const FIRST_POLL_MS = 2_000;
const LAST_POLL_MS = 30_000;
/** The maximum wait for the tool of an aborted call to stop, in milliseconds. */
const STOPPED_MS = 60_000;
const ROOM_BYTES = 1_024;
/** The maximum number of waiting calls of this process, and of each principal. */
const MAX_CALLS = 16_384;
const MAX_CALLS_OF_ONE = MAX_CALLS / 8;

type DurableCall = Pick<RemoteCall, "tool" | "path" | "request" | "context">;

interface WaitingCall {
  readonly key: string;
  readonly tool: string;
  /** The last message with metadata or progress. */
  last: stored.NewsNumber;
  readonly context: ToolContext;
  readonly result: Promise<ToolResult>;
  poll(): void;
  end(result: ToolResult): void;
  /** Ends the wait for an aborted call, whose tool has stopped or does not start. */
  stopped(ran: ToolRun | undefined): void;
}

export class DurableCalls {
  readonly #link: Link;
  readonly #inbox: string;
  readonly #maxOwnerBytes: number | undefined;
  readonly #subscription: Subscription;
  readonly #waiting: Map<string, WaitingCall> = new Map();
  readonly #callers: Quotas<string | undefined> = new Quotas(MAX_CALLS, MAX_CALLS_OF_ONE);
  #runs: Promise<Runs> | undefined;
  #isStopped = false;

  /** @param maxOwnerBytes The maximum size of the waiting calls of a principal, in bytes. */
  constructor(link: Link, inbox: string, maxOwnerBytes?: number) {
    this.#link = link;
    this.#maxOwnerBytes = maxOwnerBytes;
    this.#inbox = `${createInbox(inbox)}.`;
    this.#subscription = link.listen(`${this.#inbox}*`, ({ subject, data }) => {
      const news = link.seal.unwrap(data, subject);
      if (isObject(news)) this.#hear(subject.slice(this.#inbox.length), news as never);
    });
    link.follow({
      up: () => {
        for (const call of this.#waiting.values()) call.poll();
      },
    });
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  async run(call: DurableCall): Promise<ToolResult> {
    const { tool, request: { principal } } = call;
    if (this.#callers.exceeded(principal, 1) !== undefined) {
      return failure("overloaded", tool, "too many calls are waiting", { ran: "no" });
    }
    this.#callers.add(principal, 1);
    try {
      return await this.#run(call);
    } finally {
      this.#callers.add(principal, -1);
    }
  }

  async #run({ tool: id, path, request, context }: DurableCall): Promise<ToolResult> {
    const { down, seal, log } = this.#link;
    if (down !== undefined) return unavailable(id, `${down}; nothing has run`, "no");
    const { messageId } = request;
    const [, , , digest] = path.split(".");
    let before: ToolResult | undefined;
    const nonce = messageId === undefined ? nuid.next() : undefined;
    const key = await stored.runKey(path, { ...request, nonce });
    const inbox = this.#inbox + nuid.next();
    const message = { id: key, time: systemClock.timestamp(), inbox, nonce, ...request };
    const sealed = await stored.sealRun(path, message, seal);
    const most = this.#link.maxBytes - ROOM_BYTES;
    if (sealed.body.byteLength > most) {
      const why = `the arguments have more than ${most} bytes, the limit of a durable call`;
      return failure("invalid_arguments", id, why);
    }
    let runs: Runs;
    try {
      runs = await this.#retry(context, async () => {
        const opened = await this.#open();
        // A call with a message id may be a repetition, whose result is stored already.
        const found = messageId === undefined ? undefined : await opened.records.read(key);
        if (found?.record.result !== undefined) before = endedBefore(found.record.result);
        return opened;
      });
    } catch (error) {
      log(error);
      return unavailable(id, "the server cannot store the call; nothing has run", "no");
    }
    if (before !== undefined) return before;
    if (context.signal.aborted) return aborted(id, "no");
    if (this.#isStopped) return unavailable(id, `${this.#link.down}; nothing has run`, "no");
    const call = this.#wait(runs, key, inbox, id, context);
    let isCounted = false;
    /** True after an attempt without an answer: the server may have stored the call. */
    let mayBeStored = false;
    const end = (result: ToolResult): void =>
      call.end(mayBeStored ? unavailable(id, MAY_BE_STORED, "unknown") : result);
    const send = async (): Promise<void> => {
      // The server drops a duplicate with this id. A call with another definition has another id.
      let sent = await runs.send(sealed, `${key}.${digest}`);
      // The stream may have lost a duplicate without a lease. Two messages run the call once.
      if (sent?.duplicate && !await runs.isHeld(key)) {
        mayBeStored = true;
        sent = await runs.send(sealed, nuid.next());
      }
      if (sent !== undefined) isCounted = true;
      else {
        const why = "the waiting calls of this principal have used up its quota; nothing has run";
        end(failure("overloaded", id, why, { ran: "no", retryAfterMs: MEASURED_AFTER_MS }));
      }
    };
    // The server drops duplicates, so the call can be sent again while the cluster has no leader.
    const sent = this.#retry(context, () =>
      send().catch((error) => {
        mayBeStored ||= !isNotStored(error);
        throw error;
      })).catch((error) => {
        log(error);
        const why = problemOf(error, this.#link.connection);
        end(unavailable(id, `the server rejected the call, because ${why}; nothing has run`, "no"));
      });
    try {
      const [result] = await Promise.all([call.result, sent]);
      return result;
    } finally {
      if (isCounted) runs.free(sealed);
    }
  }

  async #open(): Promise<Runs> {
    this.#runs ??= Runs.open(this.#link, { maxOwnerBytes: this.#maxOwnerBytes });
    try {
      return await this.#runs;
    } catch (error) {
      this.#runs = undefined;
      throw error;
    }
  }

  /** Repeats a request without an answer until the deadline. A cluster may be electing a leader. */
  async #retry<T>(context: ToolContext, work: () => Promise<T>): Promise<T> {
    for (let tries = 0;; tries++) {
      try {
        return await work();
      } catch (error) {
        const leftMs = CallContext.callOf(context)?.deadline.remainingMs ?? 0;
        const isOver = leftMs < 2 * stored.AGAIN_MS || context.signal.aborted;
        if (isOver || isRefused(error) || this.#link.down !== undefined) throw error;
        if (tries === 0) this.#link.log(error);
        await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, stored.AGAIN_MS));
      }
    }
  }

  /** Ends the waits, after its link has ended. The calls continue. */
  stop(): void {
    this.#isStopped = true;
    this.#subscription.unsubscribe();
    for (const { tool, end } of [...this.#waiting.values()]) {
      end(unavailable(tool, `${this.#link.down}; the call may continue`, "unknown"));
    }
  }

  #wait(runs: Runs, key: string, inbox: string, id: string, context: ToolContext): WaitingCall {
    const { signal } = context;
    const name = inbox.slice(this.#inbox.length);
    let disarm = (): void => {};
    const poll = (nextMs = FIRST_POLL_MS): void => {
      disarm();
      if (!this.#waiting.has(name)) return;
      const laterMs = Math.min(2 * nextMs, LAST_POLL_MS);
      disarm = systemClock.setTimeout(() => poll(laterMs), nextMs);
      // Without a connection nothing can be read. The call continues.
      if (this.#link.down !== undefined) return;
      runs.records.read(key).then((found) => {
        const result = found?.record.result;
        if (result !== undefined) end(adopt(result));
      }, this.#link.log);
    };
    const release = (): void => {
      disarm();
      signal.removeEventListener("abort", abort);
      this.#waiting.delete(name);
    };
    const stopped = (ran: ToolRun | undefined): void => {
      if (!signal.aborted) return;
      release();
      resolve(aborted(id, ran));
    };
    const abort = (): void => {
      disarm();
      // If no worker reports within this time, `ran` is "unknown".
      disarm = systemClock.setTimeout(() => stopped("unknown"), STOPPED_MS);
      this.#cancel(runs, key).then((ran) => ran && stopped(ran), this.#link.log);
    };
    const end = (result: ToolResult): void => {
      if (signal.aborted) return;
      release();
      resolve(result);
    };
    let resolve: (result: ToolResult) => void = () => {};
    const result = new Promise<ToolResult>((settle) => resolve = settle);
    const last = { attempt: 0, count: 0 };
    const call: WaitingCall = { key, last, tool: id, context, result, poll, end, stopped };
    this.#waiting.set(name, call);
    poll();
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    return call;
  }

  /**
   * Writes the abort as the result, so that no worker starts the call or writes another result. Returns
   * whether the tool has run; `undefined` if a worker may be running it.
   */
  async #cancel(runs: Runs, key: string): Promise<ToolRun | undefined> {
    let ran: ToolRun | undefined;
    await runs.records.change(key, (record = stored.NEW_RUN) => {
      const { attempts, holder, hasRun, result } = record;
      // A worker that has died may have run the tool.
      const unheld = hasRun ? "yes" : attempts > 0 ? "unknown" : "no";
      ran = holder !== "" ? undefined : unheld;
      if (result !== undefined) ran = result.ok ? "yes" : result.error.ran ?? "yes";
      if (result !== undefined) return undefined;
      const details = { ran: ran ?? "unknown" };
      const stopped = ToolResult.error("aborted", "The call was aborted", details);
      return { ...record, holder: "", result: stopped };
    });
    if (ran === undefined) this.#link.publish(stored.RUN_CONTROL + key, { stop: key });
    return ran;
  }

  #hear(name: string, news: stored.RunNews & { readonly key: string }): void {
    const call = this.#waiting.get(name);
    // The inbox may receive messages of other tasks, because another caller can name it.
    if (call === undefined || news.key !== call.key) return;
    if ("count" in news) {
      const { attempt, count } = call.last;
      const isNext = news.attempt > attempt || news.attempt === attempt && news.count > count;
      // A repeated message is ignored, because anybody with access to inboxes can replay a message.
      if (!isNext) return;
      call.last = news;
    }
    switch (news.type) {
      case "metadata":
        return call.context.metadata(news.value);
      case "progress": {
        const { done, total, message } = news.progress;
        return call.context.progress(done, total, message);
      }
      case "done":
        return call.poll();
      case "stopped":
        return call.stopped(news.ran);
      case "ended":
        return call.end(adopt(news.result));
    }
  }
}

const MAY_BE_STORED = "the server did not confirm the call; if the call is stored, it runs once";

/** True if the server has answered that it did not store a call. */
function isNotStored(error: unknown): boolean {
  return error instanceof JetStreamApiError ||
    error instanceof Error && error.name === "JetStreamNotEnabled";
}

/** Returns the stored result of a repeated call. Another repetition would return the same result. */
function endedBefore(result: ToolResult): ToolResult {
  if (result.ok || isSuspended(result)) return adopt(result);
  return adopt({ ...result, error: { ...result.error, retryable: false } });
}
