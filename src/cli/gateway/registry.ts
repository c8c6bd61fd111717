/** The registry of the gateway: the tools of several sources, which their own registries run. */

import { ToolRegistry } from "../../adapters/typebox/mod.ts";
import type { Registry, ToolRuntime } from "../../registry/mod.ts";
import { describeThrown, isThenable, type Tool } from "../../tool/mod.ts";
import type { Source } from "./source.ts";

export class GatewayRegistry extends ToolRegistry {
  readonly #owners = new WeakMap<Tool, Source>();
  readonly #hosts = new WeakMap<
    ToolRuntime,
    { readonly registry: Registry | undefined; readonly source: Source }
  >();
  readonly #onProblem: (message: string) => void;
  #sources: readonly Source[] = [];

  constructor(onProblem: (message: string) => void) {
    super({
      onError: ({ phase, toolId, error }) =>
        onProblem(`${phase} of "${toolId}": ${describeThrown(error, 1_000)}`),
    });
    this.#onProblem = onProblem;
  }

  setSources(sources: readonly Source[]): void {
    this.#sources = sources;
    this.sync(new Set(sources));
  }

  /** Takes the current tools of all sources, if one of them has changed. */
  sync(changed: ReadonlySet<Source>): void {
    const sources = new Set(this.#sources);
    if (sources.size > 0 && !this.#sources.some((source) => changed.has(source))) return;
    for (const tool of this.tools) {
      const owner = this.#owners.get(tool);
      const isOffered = owner !== undefined && sources.has(owner) && owner.tools.has(tool.id);
      if (!isOffered) this.unregisterTool(tool.id);
    }
    for (const source of sources) {
      for (const [id, tool] of source.tools) this.#take(id, tool, source);
    }
  }

  #take(id: string, tool: Tool, source: Source): void {
    const old = this.getTool(id);
    if (old === tool) return;
    this.#owners.set(tool, source);
    try {
      if (old !== undefined && this.#owners.get(old) === source) this.updateTool(tool);
      else this.registerTool(tool);
    } catch (error) {
      this.#onProblem(`source "${source.named.name}": ${describeThrown(error, 1_000)}`);
    }
  }

  override acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime> {
    const source = this.#owners.get(tool);
    if (source === undefined || this.getTool(tool.id) !== tool) return super.acquire(tool);
    const registry = hostOf(tool, source);
    const runtime = registry === undefined ? super.acquire(tool) : registry.acquire(tool);
    const begin = (ready: ToolRuntime): ToolRuntime => {
      this.#hosts.set(ready, { registry, source });
      source.begin();
      return ready;
    };
    return isThenable(runtime) ? Promise.resolve(runtime).then(begin) : begin(runtime);
  }

  override release(runtime: ToolRuntime): void {
    const host = this.#hosts.get(runtime);
    if (host?.registry === undefined) super.release(runtime);
    else host.registry.release(runtime);
    host?.source.end();
  }

  override isAvailable(tool: Tool): boolean {
    const registry = hostOf(tool, this.#owners.get(tool));
    return registry === undefined ? super.isAvailable(tool) : registry.isAvailable(tool);
  }
}

/** Returns the registry of a source that runs a tool. A view and a placeholder are not in it. */
function hostOf(tool: Tool, source: Source | undefined): Registry | undefined {
  return source?.registry.getTool(tool.id) === tool ? source.registry : undefined;
}
