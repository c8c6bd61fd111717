/** The registry of the gateway: the tools of several sources, which their own registries run. */

import { ToolRegistry } from "../../adapters/typebox/mod.ts";
import type { Registry, ToolRuntime } from "../../registry/mod.ts";
import { describeThrown, isThenable, type Tool } from "../../tool/mod.ts";
import type { Source } from "./source.ts";

/** Has the tools of its sources, and follows their changes. */
export class GatewayRegistry extends ToolRegistry {
  readonly #followed = new Map<Source, { readonly tools: Map<string, Tool>; stop(): void }>();
  readonly #owners = new WeakMap<Tool, Source>();
  readonly #hosts = new WeakMap<
    ToolRuntime,
    { readonly registry: Registry | undefined; readonly source: Source }
  >();
  readonly #onProblem: (message: string) => void;
  readonly #onSync: () => void;

  constructor(onProblem: (message: string) => void, onSync: () => void) {
    super({
      onError: ({ phase, toolId, error }) =>
        onProblem(`${phase} of "${toolId}": ${describeThrown(error, 1_000)}`),
    });
    this.#onProblem = onProblem;
    this.#onSync = onSync;
  }

  /** Replaces the sources. The tools of sources that stay are not touched. */
  setSources(sources: readonly Source[]): void {
    const next = new Set(sources);
    for (const [source, { tools, stop }] of this.#followed) {
      if (next.has(source)) continue;
      stop();
      for (const id of tools.keys()) this.unregisterTool(id);
      this.#followed.delete(source);
    }
    for (const source of sources) {
      if (!this.#followed.has(source)) this.#follow(source);
      // Also known sources: a removed one may have had the id of their tool.
      this.#sync(source);
    }
  }

  #follow(source: Source): void {
    let isPlanned = false;
    const stop = source.subscribe(() => {
      // A source may report each of its tools, so the changes of one turn are applied together.
      if (isPlanned) return;
      isPlanned = true;
      queueMicrotask(() => {
        isPlanned = false;
        this.#sync(source);
      });
    });
    this.#followed.set(source, { tools: new Map(), stop });
  }

  #sync(source: Source): void {
    const followed = this.#followed.get(source);
    if (followed === undefined) return;
    const { tools: before } = followed;
    const next = new Map(source.tools().map((tool) => [tool.id, tool]));
    for (const id of before.keys()) {
      if (next.has(id)) continue;
      before.delete(id);
      this.unregisterTool(id);
    }
    for (const [id, tool] of next) {
      const old = before.get(id);
      if (old === tool) continue;
      this.#owners.set(tool, source);
      try {
        if (old === undefined) this.registerTool(tool);
        else this.updateTool(tool);
        before.set(id, tool);
      } catch (error) {
        this.#onProblem(`source "${source.name}": ${describeThrown(error, 1_000)}`);
      }
    }
    this.#onSync();
  }

  override acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime> {
    const source = this.#owners.get(tool);
    if (source === undefined || this.getTool(tool.id) !== tool) return super.acquire(tool);
    // A view and a placeholder are tools of this registry only.
    const registry = source.registry.getTool(tool.id) === tool ? source.registry : undefined;
    const fail = (error: unknown): never => {
      source.end();
      throw error;
    };
    const begun = (runtime: ToolRuntime): ToolRuntime => {
      this.#hosts.set(runtime, { registry, source });
      return runtime;
    };
    source.begin();
    try {
      const runtime = registry === undefined ? super.acquire(tool) : registry.acquire(tool);
      return isThenable(runtime) ? Promise.resolve(runtime).then(begun, fail) : begun(runtime);
    } catch (error) {
      return fail(error);
    }
  }

  override release(runtime: ToolRuntime): void {
    const host = this.#hosts.get(runtime);
    if (host?.registry === undefined) super.release(runtime);
    else host.registry.release(runtime);
    host?.source.end();
  }

  override isAvailable(tool: Tool): boolean {
    const source = this.#owners.get(tool);
    const isHosted = source?.registry.getTool(tool.id) === tool;
    return isHosted ? source.registry.isAvailable(tool) : super.isAvailable(tool);
  }
}
