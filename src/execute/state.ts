/**
 * What all calls of a dispatcher, and of its views for other callers, share.
 *
 * @module
 */

import { isToolHost, Registry, type ToolHost } from "../registry/mod.ts";
import type { Toolset, ToolSource } from "../select/mod.ts";
import { callHook, NO_LOG, once, refuse, type Tool } from "../tool/mod.ts";
import { Gate } from "./limits.ts";
import { IdempotencyStore } from "./idempotency.ts";
import { type DispatcherMetrics, ToolStats } from "./metrics.ts";
import type { DispatchPhase, Settings } from "./options.ts";
import type { CallShared, ToolPlan } from "./call.ts";
import { planFor } from "./steps.ts";

/** Under this id the metrics of tools beyond the limit are added up. No tool can have it. */
const OTHER_TOOLS = "*";

/** How many plans are looked at for one whose tool has been removed, when there is no room. */
const MAX_EVICTION_TRIES = 8;

/** What the calls of a dispatcher and its views share: limits, keys, plans and metrics. */
export class DispatcherState implements CallShared {
  readonly settings: Settings;
  readonly gate: Gate;
  readonly keys: IdempotencyStore;
  /** Counts the calls: this one, or that of another dispatcher. */
  readonly counter: DispatcherState;
  /** Calls that named no tool of their caller's. */
  unknown = 0;
  readonly #plans: Map<string, ToolPlan> = new Map();
  readonly #others: ToolStats = new ToolStats(OTHER_TOOLS);
  readonly #hosts: WeakMap<ToolSource, ToolHost> = new WeakMap();
  #since: number;
  #calls = 0;
  #callPrefix: string | undefined;

  constructor(settings: Settings, counter?: DispatcherState) {
    const { clock } = settings;
    this.settings = settings;
    this.counter = counter?.counter ?? this;
    const { maxConcurrent, maxConcurrentPerTool, maxQueued } = settings.limits;
    this.gate = new Gate(maxConcurrent, maxConcurrentPerTool, maxQueued);
    this.keys = new IdempotencyStore(clock, settings.idempotency);
    this.#since = clock.timestamp();
  }

  /** How calls of `tool`, which `host` runs, go, and where they are counted. */
  planOf(tool: Tool, host: ToolHost): ToolPlan {
    const known = this.#plans.get(tool.id);
    const { counter } = this;
    // The counter may have given the place of the numbers to another tool.
    const counted = counter === this ? known?.stats : counter.planOf(tool, host).stats;
    if (known?.tool === tool && known.stats === counted) return known;
    // A tool that replaced another of its id goes on with the other's numbers.
    const stats = counted ?? (this.#hasRoom() ? new ToolStats(tool.id) : this.#others);
    const plan = planFor(tool, this.settings, { stats, host });
    // Plans of removed tools, whose numbers are kept elsewhere.
    if (this.#plans.size > this.settings.maxMeteredTools) this.#plans.clear();
    if (stats.id === tool.id) this.#plans.set(tool.id, plan);
    return plan;
  }

  /**
   * Whether another tool can have metrics of its own. Where there are too many, a tool that its host
   * has removed gives up its place, and its numbers are added to those of the others.
   */
  #hasRoom(): boolean {
    const plans = this.#plans;
    if (plans.size < this.settings.maxMeteredTools) return true;
    let looks = 0;
    for (const [id, plan] of plans) {
      plans.delete(id);
      if (plan.stats.isIdle && plan.host.getTool(id) === undefined) {
        this.#others.absorb(plan.stats);
        return true;
      }
      // To the end: the next tool without a place looks at others.
      plans.set(id, plan);
      if (++looks === MAX_EVICTION_TRIES) break;
    }
    return false;
  }

  /** What runs the tools of a toolset: the registry it came from, or one made for its list. */
  hostOf(toolset: Toolset): ToolHost {
    const { source, bridge } = toolset;
    if (isToolHost(source)) return source;
    return once(this.#hosts, source, () => {
      const engine = this.settings.engine ?? (bridge && this.hostOf(bridge.behind).engine);
      if (engine === undefined) {
        refuse(
          `make a dispatcher for the toolset "${toolset.name}"`,
          "its tools came from a list, so the option engine must say what compiles their schemas",
        );
      }
      // All tools of the list, so that its toolsets share each tool's state.
      return new Registry({ engine, tools: source.tools });
    });
  }

  /** A name for a call that has none. */
  nextCallId(): string {
    // Not before the first call: edge runtimes refuse randomness while a module loads.
    this.#callPrefix ??= `call_${crypto.randomUUID().slice(0, 13)}`;
    return `${this.#callPrefix}-${(++this.#calls).toString(36)}`;
  }

  /** Tells the host what was thrown. */
  report(toolId: string, callId: string, phase: DispatchPhase, error: unknown): void {
    callHook(() => this.settings.onError?.({ toolId, callId, phase, error }), NO_LOG);
  }

  metrics(): DispatcherMetrics {
    const { clock } = this.settings;
    const tools = [...this.#plans.values()]
      .map(({ stats }) => stats.snapshot(clock))
      .concat(this.#others.snapshot(clock))
      .filter(({ calls, inFlight, abandoned }) => calls + inFlight + abandoned > 0)
      .sort((a, b) => a.id < b.id ? -1 : 1);
    const sum = (count: "calls" | "failed" | "inFlight"): number =>
      tools.reduce((total, tool) => total + tool[count], 0);
    return {
      since: this.#since,
      calls: sum("calls") + this.unknown,
      failed: sum("failed") + this.unknown,
      inFlight: sum("inFlight"),
      queued: this.gate.queued,
      unknownTool: this.unknown,
      tools,
    };
  }

  resetMetrics(): void {
    for (const { stats } of this.#plans.values()) stats.reset();
    this.#others.reset();
    this.unknown = 0;
    this.#since = this.settings.clock.timestamp();
  }
}
