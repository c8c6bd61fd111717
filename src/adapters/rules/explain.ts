/** Explanations of calls that are not made. */

import { hostContext } from "../../execute/layers/mod.ts";
import * as calls from "../../execute/mod.ts";
import { fail, type ToolCallError, type ToolDefinition, type ToolResult } from "../../tool/mod.ts";
import type { RuleLayer, RuleVerdict } from "./layer.ts";

/** The explanation of a call that was not made. JSON. */
export interface CallExplanation {
  /** The decision of all rules. `invalid`: the call would fail before, as `error` says. */
  readonly verdict: RuleVerdict["verdict"] | "invalid";
  /** The verdicts of the rules that apply to the tool, in their order. */
  readonly rules: readonly RuleVerdict[];
  readonly error?: Pick<ToolCallError, "code" | "message">;
}

/**
 * Returns the verdict of each rule about a call, without making the call: nothing is counted or
 * labelled, and hooks and repairs are not called. The arguments are parsed and validated.
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
 * @param dispatcher The dispatcher that would run the call.
 * @param context The host's part of the call, such as its principal and its session.
 */
export async function explainCall(
  { toolset, settings }: Pick<calls.Dispatcher, "toolset" | "settings">,
  { name, arguments: args }: calls.ToolCall,
  { principal, sessionId, services, context, signal }: calls.DispatchContext = {},
): Promise<CallExplanation> {
  let rules: readonly RuleVerdict[] = [];
  const { layers, timeoutMs, maxArgumentBytes, clock, onError } = settings;
  // These layers meet the requirements of tools. The first one ends the call.
  const explaining = [{}, { meets: "approval" }, { meets: "transaction" }] as const;
  const explain = async (call: calls.Call): Promise<ToolResult> => {
    // Not by instanceof: the command and a module may have two copies of plue.
    const own = layers.filter((layer): layer is RuleLayer =>
      layer.name === "rules" && "explain" in layer
    );
    rules = (await Promise.all(own.map((layer) => layer.explain(call)))).flat();
    return { ok: true, content: null, durationMs: 0 };
  };
  const explainer = new calls.Dispatcher(toolset, {
    ...{ timeoutMs, maxArgumentBytes, clock, onError },
    layers: [
      hostContext(),
      ...explaining.map((meets) =>
        ({ name: "explain", stage: "run", ...meets, for: () => explain }) as const
      ),
    ],
  });
  const host = { principal, sessionId, services, context, signal };
  const result = await explainer.dispatch({ name, arguments: args }, host);
  if (!result.ok) {
    const { code, message } = result.error;
    return { verdict: "invalid", rules: [], error: { code, message } };
  }
  const of = (one: RuleVerdict["verdict"]) => rules.some(({ verdict }) => verdict === one);
  return { verdict: of("deny") ? "deny" : of("ask") ? "ask" : "allow", rules };
}

/**
 * Defines the tool `explain_call`, by which callers over HTTP, MCP and C explain calls: with the id and
 * the arguments of a call, it returns a {@linkcode CallExplanation} for their own tools and session.
 *
 * @param fields Fields of the definition to replace, such as `roles: ["operator"]`.
 */
export function explainTool(fields: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name: "explain_call",
    description: "Returns whether rules would allow a call, deny it, or require approval.",
    risk: "safe",
    tags: ["read-only"],
    parameters: {
      type: "object",
      properties: { tool: { type: "string" }, arguments: { type: "object" } },
      required: ["tool"],
      additionalProperties: false,
    },
    ...fields,
    async execute(given, context) {
      const call = calls.CallContext.callOf(context) ??
        fail("explain a call", "only a dispatcher runs explain_call");
      const { tool: name, arguments: args } = given as { tool: string; arguments?: unknown };
      const { toolset, options: { signal: _, ...options } } = call;
      const dispatcher = { toolset, settings: call.settings as calls.KernelSettings };
      return await explainCall(dispatcher, { name, arguments: args }, options);
    },
  };
}
