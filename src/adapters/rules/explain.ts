/** Explanations of calls that are not made. */

import * as calls from "../../execute/mod.ts";
import { isToolHost, type ToolRuntime } from "../../registry/mod.ts";
import { compileOnce } from "../../schema/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import type { RuleLayer, RuleVerdict } from "./layer.ts";
import { toolBehind } from "./tools.ts";

/** The explanation of a call that was not made. JSON. */
export interface CallExplanation {
  /** The decision of all rules. `invalid`: the call would fail before, with `error`. */
  readonly verdict: RuleVerdict["verdict"] | "invalid";
  /** The tool that would run: the original of a view, the tool that `call_tool` calls. */
  readonly tool?: string;
  /** The verdicts of the rules that apply to the tool, in their order. */
  readonly rules: readonly RuleVerdict[];
  /** States that the tool calls other tools, as `run_code` does: the rules decide on these calls, too. */
  readonly note?: string;
  readonly error?: Pick<check.ToolCallError, "code" | "message">;
}

/**
 * Returns the verdict of each rule about a call, without making the call: nothing is counted or
 * labelled, and hooks and repairs are not called. The arguments are parsed and validated, for which
 * the tool is initialized.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { explainCall } from "@plue/tools/rules";
 *
 * const dispatcher = new ToolDispatcher(new ToolRegistry());
 * assert.equal((await explainCall(dispatcher, { name: "wipe" })).error?.code, "unknown_tool");
 * ```
 *
 * @param context The host's part of the call, such as its principal and its session.
 */
export async function explainCall(
  { toolset, settings }: Pick<calls.Dispatcher, "toolset" | "settings">,
  call: calls.ToolCall,
  context: calls.DispatchContext = {},
): Promise<CallExplanation> {
  // Not by instanceof: the command and a module may have two copies of plue.
  const deciding = settings.layers.filter((layer): layer is RuleLayer =>
    layer.name === "rules" && "explain" in layer
  );
  const explain = async (made: calls.Call): Promise<check.ToolResult> => {
    const rules = (await Promise.all(deciding.map((layer) => layer.explain(made)))).flat();
    const isAny = (one: string) => rules.some(({ verdict }) => verdict === one);
    const verdict = isAny("deny") ? "deny" : isAny("ask") ? "ask" : "allow";
    const { id, callsTools } = toolBehind(made.tool);
    const note = callsTools && { note: "rules decide on its calls" };
    return { ok: true, content: { verdict, tool: id, rules, ...note }, durationMs: 0 };
  };
  // These layers meet the requirements of tools. The first one ends the call.
  const meets = [{}, { meets: "approval" }, { meets: "transaction" }, { meets: "credentials" }];
  const layers = meets.map((one): calls.Layer => ({
    name: "explain",
    stage: "run",
    ...one as object,
    for: () => explain,
  }));
  const checking = settings.layers.filter(({ name }) => name === "host-context");
  const { timeoutMs, maxArgumentBytes, clock, onError } = settings;
  const options = { timeoutMs, maxArgumentBytes, clock, onError, layers: [checking, layers] };
  const explainer = new calls.Dispatcher(hosted(toolset), options);
  // No result is stored for the key of a call that is not made.
  const result = await explainer.dispatch(call, { ...context, idempotencyKey: undefined });
  if (result.ok) return result.content as CallExplanation;
  const { code, message } = result.error;
  return { verdict: "invalid", rules: [], error: { code, message } };
}

/** Returns a host for the own tools of a bridge, which come from a list and are not run here. */
function hosted(toolset: Toolset): Toolset | calls.SelectableToolHost {
  const target = toolset.bridge?.target.source;
  if (!isToolHost(target)) return toolset;
  const { engine } = target;
  return {
    ...toolset.source,
    engine,
    select: () => toolset,
    acquire: (tool) => ({ tool, parameters: compileOnce(engine, tool.parameters) }) as ToolRuntime,
    release: check.noop,
  };
}

/**
 * Defines the tool `explain_call`, by which callers over HTTP, MCP and C explain calls: with the id and
 * the arguments of a call, it returns a {@linkcode CallExplanation} for their own tools and session.
 *
 * @param fields Fields of the definition to replace, such as `roles: ["operator"]`.
 */
export function explainTool(fields: Partial<check.ToolDefinition> = {}): check.ToolDefinition {
  return {
    name: "explain_call",
    description: "Returns what rules decide on a call: allow, deny or ask.",
    risk: "safe",
    tags: ["read-only"],
    parameters: {
      type: "object",
      properties: { tool: { type: "string" }, arguments: { type: "object" } },
      required: ["tool"],
      additionalProperties: false,
    },
    ...fields,
    async execute(input, context) {
      // The module of the tool may have its own copy of the package.
      const call: calls.Call = Object(context.constructor).callOf?.(context) ??
        check.fail("explain a call", "use dispatch()");
      const { tool: name, arguments: args } = input as { tool: string; arguments?: unknown };
      const { toolset, options: { signal: _, ...options } } = call;
      const dispatcher = { toolset, settings: call.settings as calls.KernelSettings };
      return await explainCall(dispatcher, { name, arguments: args }, options);
    },
  };
}
