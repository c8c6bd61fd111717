/**
 * A worker as a service of NATS, for `nats micro` and other clients of `$SRV.PING`, `$SRV.INFO` and
 * `$SRV.STATS` (ADR-32 of NATS).
 */

import type { Msg, Subscription } from "@nats-io/nats-core";
import type { DispatcherMetrics } from "../../execute/mod.ts";
import { callHook, systemClock } from "../../tool/mod.ts";
import type { Link } from "./link.ts";
import { callSubject } from "./protocol.ts";

/** The version of the protocol between callers and workers. */
const VERSION = "1.0.0";
/** The maximum number of tools in the statistics: the tools with the most calls. */
const MAX_TOOLS = 100;
/** An answer costs 1, and 1 more for this number of tools. */
const TOOLS_TO_COST = 64;
/** The maximum cost of all answers per renewal: every user of the account can send requests. */
const BUDGET = 1_000;

export class Service {
  readonly #link: Link;
  readonly #worker: string;
  readonly #metrics: () => DispatcherMetrics;
  readonly #name: string;
  readonly #started: string = new Date(systemClock.timestamp()).toISOString();
  readonly #subscriptions: readonly Subscription[];
  #budget = BUDGET;
  #isRefused = false;
  /** The code and the tool of the last failed call. Its message could quote arguments. */
  lastError = "";

  /** @param metrics Returns the metrics of the worker's calls. */
  constructor(link: Link, worker: string, metrics: () => DispatcherMetrics) {
    this.#link = link;
    this.#worker = worker;
    this.#metrics = metrics;
    this.#name = `plue-${link.name}`;
    this.#subscriptions = ["", `.${this.#name}`, `.${this.#name}.${worker}`].map((place) =>
      link.connection.subscribe(`$SRV.*${place}`, {
        callback: (error, message) => error === null ? this.#hear(message) : this.#refused(error),
      })
    );
  }

  renew(): void {
    this.#budget = BUDGET;
  }

  stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  /** Logs once that the user may not subscribe. Calls are served anyway. */
  #refused(cause: Error): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    const why =
      'the user of the connection may not subscribe to "$SRV.>"; calls are served all the same';
    this.#link.log(new Error(`Cannot answer "nats micro": ${why}`, { cause }));
  }

  #hear(message: Msg): void {
    const [, verb = "", name, id] = message.subject.split(".");
    // A worker may publish to the directory and to the server's API: it responds to inboxes only.
    if (this.#budget <= 0 || message.reply?.startsWith("_INBOX") !== true) return;
    const { reply } = message;
    const response = this.#respond(verb, name !== undefined && id !== undefined);
    if (response === undefined) return;
    this.#budget--;
    const { connection, log } = this.#link;
    callHook(() => connection.publish(reply, JSON.stringify(response)), log);
  }

  /** @param isMeant True if the request is for this worker only: the answer then lists its tools. */
  #respond(verb: string, isMeant: boolean): Record<string, unknown> | undefined {
    const { name: registry } = this.#link;
    const common = (type: string) => ({
      type: `io.nats.micro.v1.${type}_response`,
      ...{ name: this.#name, id: this.#worker, version: VERSION, metadata: { registry } },
    });
    const endpoint = { name: "call", subject: callSubject(this.#worker, ">"), queue_group: "" };
    switch (verb) {
      case "PING":
        return common("ping");
      case "INFO":
        return {
          ...common("info"),
          description: `Tools of the registry "${registry}", by plue`,
          endpoints: [{ ...endpoint, metadata: {} }],
        };
      case "STATS":
        return {
          ...common("stats"),
          started: this.#started,
          endpoints: [{ ...endpoint, ...this.#stats(isMeant) }],
        };
    }
    return undefined;
  }

  #stats(isMeant: boolean): Record<string, unknown> {
    const { tools, inFlight } = this.#metrics();
    this.#budget -= tools.length / TOOLS_TO_COST;
    let [calls, failed, ms] = [0, 0, 0];
    for (const tool of tools) {
      calls += tool.calls;
      failed += tool.failed;
      ms += tool.duration?.totalMs ?? 0;
    }
    const most = isMeant ? [...tools].sort((a, b) => b.calls - a.calls).slice(0, MAX_TOOLS) : [];
    return {
      ...{ num_requests: calls, num_errors: failed, last_error: this.lastError },
      processing_time: Math.round(ms * 1e6),
      average_processing_time: calls === 0 ? 0 : Math.trunc(Math.round(ms * 1e6) / calls),
      data: {
        in_flight: inFlight,
        ...(isMeant && {
          tools: most.map(({ id, calls, failed, errors }) => ({ id, calls, failed, errors })),
        }),
      },
    };
  }
}
