/**
 * The caller's side of durable calls.
 *
 * @module
 */

import { jetstream } from "@nats-io/jetstream";
import { createInbox, type NatsConnection, nuid, type Subscription } from "@nats-io/nats-core";
import {
  type HookLog,
  isObject,
  systemClock,
  type ToolContext,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";
import type { Seal } from "./message.ts";
import { type CallRequest, resultOf } from "./remote_calls.ts";
import { RUN_CONTROL, runKey, type RunMessage, type RunNews, Runs } from "./runs.ts";
import { runSubject } from "./subjects.ts";

/** How often the store is asked, in case the news of the end was lost. */
const LOOK_EVERY_MS = 2_000;
/** What a message may have besides the call. */
const ROOM_BYTES = 1_024;

interface WaitingCall {
  readonly context: ToolContext;
  /** Looks for the result. */
  look(): void;
}

/** Sends durable calls, and waits for their results. */
export class DurableCalls {
  readonly #connection: NatsConnection;
  readonly #seal: Seal;
  readonly #log: HookLog;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #waiting: Map<string, WaitingCall> = new Map();
  #runs: Promise<Runs> | undefined;
  #down: string | undefined;

  constructor(connection: NatsConnection, seal: Seal, inbox: string, log: HookLog) {
    this.#connection = connection;
    this.#seal = seal;
    this.#log = log;
    this.#inbox = `${createInbox(inbox)}.`;
    this.#subscription = connection.subscribe(`${this.#inbox}*`, {
      callback: (error, { subject, data }) => {
        if (error !== null) return log(error);
        const news = seal.unwrap(data, subject);
        if (isObject(news)) this.#hear(subject.slice(this.#inbox.length), news as never);
      },
    });
  }

  /**
   * Runs a call that survives its worker, its server and its caller: the same call of the same caller
   * gets the same result. Rejects if it is aborted, with the reason.
   */
  async run(
    path: string,
    id: string,
    request: CallRequest,
    context: ToolContext,
  ): Promise<ToolResult> {
    if (this.#down !== undefined) return unavailable(id, `${this.#down}; nothing has run`);
    try {
      const runs = await (this.#runs ??= Runs.open(this.#connection));
      const [registry, , , digest] = path.split(".");
      const key = await runKey(`${registry}/${id}`, request);
      const inbox = this.#inbox + nuid.next();
      const message: RunMessage = {
        ...{ id: key, time: systemClock.timestamp(), key, inbox },
        ...request,
      };
      const subject = runSubject(path);
      const body = this.#seal.wrap(message, subject);
      const most = (this.#connection.info?.max_payload ?? 1_048_576) - ROOM_BYTES;
      if (body.byteLength > most) {
        return ToolResult.error(
          "invalid_arguments",
          `Cannot call "${id}": its arguments have more than the ${most} bytes of a durable call`,
        );
      }
      const result = this.#result(runs, key, inbox, context);
      // The server takes a call once that is sent twice, and again for another definition.
      await jetstream(this.#connection).publish(subject, body, { msgID: `${key}.${digest}` });
      return await result;
    } catch (error) {
      this.#runs = undefined;
      context.throwIfAborted();
      this.#log(error);
      return unavailable(id, "it could not be sent; it may have been, and then runs once");
    }
  }

  disconnect(why: string): void {
    this.#down = why;
  }

  reconnect(): void {
    this.#down = undefined;
    for (const call of this.#waiting.values()) call.look();
  }

  stop(): void {
    this.disconnect("its registry is closed");
    this.#subscription.unsubscribe();
  }

  /** Waits for the result in the store. */
  #result(runs: Runs, key: string, inbox: string, context: ToolContext): Promise<ToolResult> {
    const { signal } = context;
    const name = inbox.slice(this.#inbox.length);
    let disarm = (): void => {};
    let abort = (): void => {};
    const result = new Promise<ToolResult>((resolve, reject) => {
      const look = (): void => {
        disarm();
        disarm = systemClock.setTimeout(look, LOOK_EVERY_MS);
        // Without a connection there is nothing to read: the call goes on all the same.
        if (this.#down !== undefined) return;
        runs.read(key).then((found) => {
          if (found?.record.state === "done") resolve(resultOf(found.record));
        }, this.#log);
      };
      abort = () => {
        this.#cancel(runs, key).catch(this.#log).finally(() => reject(signal.reason));
      };
      this.#waiting.set(name, { context, look });
      look();
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
    });
    return result.finally(() => {
      disarm();
      signal.removeEventListener("abort", abort);
      this.#waiting.delete(name);
    });
  }

  /** Writes that the call was aborted, as its result: no worker begins it then, or keeps another. */
  async #cancel(runs: Runs, key: string): Promise<void> {
    const result = ToolResult.error("aborted", "The call was aborted");
    for (let found = await runs.read(key);; found = await runs.read(key)) {
      if (found?.record.state === "done") return;
      const done = { state: "done", result } as const;
      if (await runs.write(key, done, found?.revision ?? 0) !== undefined) break;
    }
    const subject = RUN_CONTROL + key;
    this.#connection.publish(subject, this.#seal.wrap({ stop: key }, subject));
  }

  #hear(name: string, news: RunNews): void {
    const call = this.#waiting.get(name);
    if (call === undefined) return;
    switch (news.type) {
      case "metadata":
        return call.context.metadata(news.value);
      case "progress": {
        const { done, total, message } = news.progress;
        return call.context.progress(done, total, message);
      }
      case "done":
        return call.look();
    }
  }
}

function unavailable(id: string, why: string): ToolFailure {
  return ToolResult.error("unavailable", `Cannot call "${id}": ${why}`);
}
