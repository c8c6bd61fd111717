/**
 * Counts and times the calls of each tool.
 *
 * @module
 */

import { type Clock, systemClock, type Tool } from "../../tool/mod.ts";
import type { Call, Layer } from "../layer.ts";
import { type DispatcherMetrics, ToolStats } from "../metrics.ts";

/** Counters for more tools than that drop those of the tool that was called first and is idle. */
const MAX_TOOLS = 10_000;

/** The layer of metrics, and its counters. */
export interface MetricsLayer extends Layer {
  /** Counts and durations of the calls, per tool. JSON. */
  snapshot(): Omit<DispatcherMetrics, "queued">;
  /** Sets the metrics back to zero. Calls that are under way stay counted as such. */
  reset(): void;
}

/**
 * A layer that counts and times calls. It only observes, so a call waits for nothing. Stage `call`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { metrics } from "@plue/tools/layers";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const counters = metrics();
 * const dispatcher = new Dispatcher(registry, { layers: [counters] });
 *
 * await dispatcher.dispatch({ name: "ping" });
 * assert.equal(counters.snapshot().calls, 1);
 * ```
 *
 * @param clock Tells the time; the same as the dispatcher's.
 */
export function metrics(clock: Clock = systemClock): MetricsLayer {
  const tools: Map<string, ToolStats> = new Map();
  let unknownTool = 0;
  let since = clock.timestamp();
  return {
    name: "metrics",
    stage: "call",
    observe(tool) {
      // A tool that replaces another of its id continues its counters.
      const stats = statsOf(tools, tool);
      return {
        began(call: Call) {
          stats.inFlight++;
          if (call.request.name !== tool.id) stats.countAlias();
        },
        ended(call, result, now) {
          stats.inFlight--;
          stats.record(result, now);
          if (call.toolState === "running") stats.abandoned++;
        },
        toolEnded: () => void stats.abandoned--,
      };
    },
    unresolved(_request, _options, { error }) {
      if (error.code === "unknown_tool") unknownTool++;
    },
    snapshot() {
      const called = [...tools.values()].map((stats) => stats.snapshot(clock))
        .filter(({ calls, inFlight, abandoned }) => calls + inFlight + abandoned > 0)
        .sort((a, b) => a.id < b.id ? -1 : 1);
      const sum = (count: "calls" | "failed" | "inFlight"): number =>
        called.reduce((total, tool) => total + tool[count], 0);
      return {
        since,
        calls: sum("calls") + unknownTool,
        failed: sum("failed") + unknownTool,
        inFlight: sum("inFlight"),
        unknownTool,
        tools: called,
      };
    },
    reset() {
      for (const stats of tools.values()) stats.reset();
      unknownTool = 0;
      since = clock.timestamp();
    },
  };
}

function statsOf(tools: Map<string, ToolStats>, { id }: Tool): ToolStats {
  const known = tools.get(id);
  if (known !== undefined) return known;
  if (tools.size >= MAX_TOOLS) {
    for (const [other, stats] of tools) {
      if (!stats.isIdle) continue;
      tools.delete(other);
      break;
    }
  }
  const stats = new ToolStats(id);
  tools.set(id, stats);
  return stats;
}
