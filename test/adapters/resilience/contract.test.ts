/** The layers of resilience through the contract of layers. */

import { ToolResult } from "@plue/tools";
import { type CallStore, memoryCallStore } from "@plue/tools/calls";
import { breakCircuits, cacheResults, limitCalls, retryCalls } from "@plue/tools/resilience";
import { describeLayer, ran, stopped, untilAborted } from "../../contract/layer_contract.ts";
import { broken, never } from "../../unit/execute/support.ts";
import { unavailable } from "./support.ts";

const execute = (): ToolResult => unavailable;
const soon = { layers: [retryCalls({ initialDelayMs: 10 })] };

describeLayer("retries", () => ({ layers: [retryCalls()], tool: { idempotent: true } }), [
  ran("returns the last failure of a tool that fails each time", "unavailable", {
    ...soon,
    execute,
  }),
  ran("runs a tool again until it succeeds", "done", {
    ...soon,
    execute: (_, { runs }) => runs < 3 ? unavailable : "done",
  }),
  ran("does not wait longer than the time of the call", "unavailable", { execute }),
  ran("does not retry a tool that was interrupted", "timeout", {
    layers: [retryCalls({ codes: ["timeout"] })],
    execute: ({ signal }) => untilAborted(signal),
  }),
]);

describeLayer("circuit breaker", () => ({ layers: [breakCircuits()] }), [
  ran("returns the failure of a tool whose circuit opens", "unavailable", {
    layers: [breakCircuits({ failures: 1 })],
    execute,
  }),
]);

describeLayer("call limits", () => ({ layers: [limitCalls([{ per: "session", limit: 2 }])] }), [
  stopped("fails a call beyond its limit", "denied", [limitCalls([{ per: "session", limit: 0 }])]),
  stopped("fails a call that cannot be counted", "threw", [
    limitCalls([{ per: "session", limit: 1 }], { store: { take: broken } }),
  ], 1),
]);

/** A cache whose store fails in one method. */
function cacheWith(method: keyof CallStore, work: () => unknown, storeTimeoutMs?: number) {
  const store = Object.assign(memoryCallStore(), { [method]: work });
  return [cacheResults({ tools: { t: { ttlMs: 1_000 } }, store, storeTimeoutMs })];
}

const fails = async (): Promise<never> => await broken();

describeLayer("result cache", (clock) => ({
  layers: [
    cacheResults({ tools: { t: { ttlMs: 1_000 } }, store: memoryCallStore({ clock }), clock }),
  ],
  startsWithoutClock: true,
}), [
  ran("runs the tool if the store rejects", "done", cacheWith("get", fails), 1),
  ran("returns a result that cannot be stored", "done", cacheWith("create", fails), 1),
  ran("does not store a failure", "denied", {
    layers: cacheWith("create", fails),
    execute: () => ToolResult.error("denied", "No"),
  }),
  ...([
    ["runs the tool if the store does not return", "get", 10],
    ["returns a result whose store does not return", "create", 10],
    [
      "leaves half of the time of a call to its tool if the store does not return",
      "get",
      undefined,
    ],
  ] as const).map(([title, method, timeoutMs]) =>
    ran(title, "done", {
      layers: cacheWith(method, never, timeoutMs),
      startsWithoutClock: false,
    }, 1)
  ),
]);
