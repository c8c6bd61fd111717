/** The registry of the gateway: the tools of several sources, which their own registries run. */

import { ToolRegistry } from "../../adapters/typebox/mod.ts";
import type { RegisteredTool } from "../../registry/lifecycle.ts";
import type { Registry, ToolRuntime } from "../../registry/mod.ts";
import { describeThrown, isThenable, type Tool } from "../../tool/mod.ts";
import { fullName } from "./file.ts";
import type { Source } from "./source.ts";

export class GatewayRegistry extends ToolRegistry {
  /** `host` is the registry of the source that runs the tool. Views and placeholders have none. */
  readonly #owners = new WeakMap<Tool, { source: Source; host: Registry | undefined }>();
  readonly #onProblem: (message: string) => void;
  #sources: readonly Source[] = [];

  constructor(onProblem: (message: string) => void) {
    super({
      onError: ({ phase, toolId, error }) =>
        onProblem(`${phase} of "${toolId}": ${describeThrown(error, 1_000)}`),
    });
    this.#onProblem = onProblem;
  }

  /** The registries of the sources dispose of the tools, except for views with a state of their own. */
  protected override removed(entry: RegisteredTool): void {
    const { tool } = entry;
    if (tool.init !== undefined && this.#owners.get(tool)?.host === undefined) super.removed(entry);
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
      const source = this.#owners.get(tool)?.source;
      const isOffered = source !== undefined && sources.has(source) && source.tools.has(tool.id);
      if (!isOffered) this.unregisterTool(tool.id);
    }
    for (const source of sources) {
      for (const [id, tool] of source.tools) this.#take(id, tool, source);
    }
  }

  #take(id: string, tool: Tool, source: Source): void {
    const old = this.getTool(id);
    if (old === tool) return;
    const host = source.registry.getTool(id) === tool ? source.registry : undefined;
    this.#owners.set(tool, { source, host });
    try {
      if (old !== undefined && this.#owners.get(old)?.source === source) this.updateTool(tool);
      else this.registerTool(tool);
    } catch (error) {
      this.#onProblem(`source "${fullName(source.named)}": ${describeThrown(error, 1_000)}`);
    }
  }

  override acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime> {
    const { source, host } = this.#owners.get(tool) ?? {};
    const isHosted = host !== undefined && this.getTool(tool.id) === tool;
    const runtime = isHosted ? host.acquire(tool) : super.acquire(tool);
    const begin = (ready: ToolRuntime): ToolRuntime => {
      source?.begin();
      return ready;
    };
    return isThenable(runtime) ? Promise.resolve(runtime).then(begin) : begin(runtime);
  }

  override release(runtime: ToolRuntime): void {
    const { source, host } = this.#owners.get(runtime.tool) ?? {};
    if (host === undefined) super.release(runtime);
    else host.release(runtime);
    source?.end();
  }

  override isAvailable(tool: Tool): boolean {
    const { host } = this.#owners.get(tool) ?? {};
    return host === undefined ? super.isAvailable(tool) : host.isAvailable(tool);
  }
}
