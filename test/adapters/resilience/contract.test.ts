/** The layers of resilience through the contract of layers. */

import { ToolResult } from "@plue/tools";
import { type CallStore, memoryCallStore } from "@plue/tools/calls";
import { breakCircuits, cacheResults, limitCalls, retryCalls } from "@plue/tools/resilience";
import { describeLayer } from "../../contract/layer_contract.ts";
import { unavailable } from "./support.ts";

const fail = (): never => {
  throw new Error("broken");
};
const never = (): Promise<never> => new Promise(() => {});

// Retries

const IDEMPOTENT = { idempotent: true } as const;

describeLayer("retries", () => ({ layers: [retryCalls()], tool: IDEMPOTENT }), [
  {
    title: "returns the last failure of a tool that fails each time",
    layers: [retryCalls({ initialDelayMs: 10 })],
    execute: () => unavailable,
    outcome: "unavailable",
    runs: true,
  },
  {
    title: "runs a tool again until it succeeds",
    execute: (_, { runs }) => runs < 3 ? unavailable : "done",
    layers: [retryCalls({ initialDelayMs: 10 })],
    outcome: "done",
    runs: true,
  },
  {
    title: "does not wait longer than the time of the call",
    execute: () => unavailable,
    outcome: "unavailable",
    runs: true,
  },
  {
    title: "does not retry a tool that was interrupted",
    layers: [retryCalls({ codes: ["timeout"] })],
    execute: ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
    outcome: "timeout",
    runs: true,
  },
]);

// Circuits

describeLayer("circuit breaker", () => ({ layers: [breakCircuits()] }), [
  {
    title: "returns the failure of a tool whose circuit opens",
    layers: [breakCircuits({ failures: 1 })],
    execute: () => unavailable,
    outcome: "unavailable",
    runs: true,
  },
]);

// Limits

describeLayer("call limits", () => ({ layers: [limitCalls([{ per: "session", limit: 2 }])] }), [
  {
    title: "fails a call beyond its limit",
    layers: [limitCalls([{ per: "session", limit: 0 }])],
    outcome: "denied",
    runs: false,
  },
  {
    title: "fails a call that cannot be counted",
    layers: [limitCalls([{ per: "session", limit: 1 }], { store: { take: fail } })],
    outcome: "threw",
    runs: false,
    reports: 1,
  },
]);

// Cached results

const CACHED = { tools: { t: { ttlMs: 1_000 } } } as const;

/** A store that fails in one method. */
function broken(method: keyof CallStore, work: () => Promise<never>): CallStore {
  return Object.assign(memoryCallStore(), { [method]: work });
}

describeLayer("result cache", (clock) => ({
  layers: [cacheResults({ ...CACHED, store: memoryCallStore({ clock }), clock })],
  startsWithoutClock: true,
}), [
  {
    title: "runs the tool of a call whose earlier result cannot be read",
    layers: [cacheResults({ ...CACHED, store: broken("get", async () => await fail()) })],
    outcome: "done",
    runs: true,
    reports: 1,
  },
  {
    title: "runs the tool of a call whose store does not return",
    layers: [cacheResults({ ...CACHED, store: broken("get", never), storeTimeoutMs: 10 })],
    startsWithoutClock: false,
    outcome: "done",
    runs: true,
    reports: 1,
  },
  {
    title: "returns a result whose store does not return",
    layers: [cacheResults({ ...CACHED, store: broken("create", never), storeTimeoutMs: 10 })],
    startsWithoutClock: false,
    outcome: "done",
    runs: true,
    reports: 1,
  },
  {
    title: "leaves half of the time of a call to its tool if the store does not return",
    layers: [cacheResults({ ...CACHED, store: broken("get", never) })],
    startsWithoutClock: false,
    outcome: "done",
    runs: true,
    reports: 1,
  },
  {
    title: "returns a result that cannot be stored",
    layers: [cacheResults({ ...CACHED, store: broken("create", async () => await fail()) })],
    outcome: "done",
    runs: true,
    reports: 1,
  },
  {
    title: "does not store a failure",
    layers: [cacheResults({ ...CACHED, store: broken("create", async () => await fail()) })],
    execute: () => ToolResult.error("denied", "No"),
    outcome: "denied",
    runs: true,
  },
]);
