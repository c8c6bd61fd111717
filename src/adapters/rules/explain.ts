/** Explanations of calls that are not made. */

import { hostContext } from "../../execute/layers/mod.ts";
import {
  CallContext,
  type DispatchContext,
  Dispatcher,
  type KernelSettings,
  type Layer,
  type ToolCall,
} from "../../execute/mod.ts";
import { fail, type ToolCallError, type ToolDefinition } from "../../tool/mod.ts";
import { engines, type RuleVerdict } from "./layer.ts";

/** The explanation of a call that was not made. JSON. */
export interface CallExplanation {
  /** The decision of all rules. `invalid`: the call would fail before, as `error` says. */
  readonly verdict: RuleVerdict["verdict"] | "invalid";
  /** The verdicts of the rules that apply to the tool, in their order. */
  readonly rules: readonly RuleVerdict[];
  readonly error?: Pick<ToolCallError, "code" | "message">;
}

const VERDICTS = ["allow", "ask", "deny"] as const;

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
  { toolset, settings }: Pick<Dispatcher, "toolset" | "settings">,
  { name, arguments: args }: ToolCall,
  { principal, sessionId, services, context, signal }: DispatchContext = {},
): Promise<CallExplanation> {
  let rules: readonly RuleVerdict[] = [];
  const { layers, timeoutMs, maxArgumentBytes, clock, onError } = settings;
  // These layers meet the requirements of tools. The first one ends the call.
  const explaining = [undefined, "approval", "transaction"] as const;
  const explainer = new Dispatcher(toolset, {
    ...{ timeoutMs, maxArgumentBytes, clock, onError },
    layers: [
      hostContext(),
      ...explaining.map((meets): Layer => ({
        ...{ name: "explain", stage: "run" },
        ...(meets && { meets }),
        for: () => async (call) => {
          const explained = await Promise.all(
            layers.map((layer) => engines.get(layer)?.explain(call) ?? []),
          );
          rules = explained.flat();
          return { ok: true, content: null, durationMs: 0 };
        },
      })),
    ],
  });
  const host = { principal, sessionId, services, context, signal };
  const result = await explainer.dispatch({ name, arguments: args }, host);
  if (!result.ok) {
    const { code, message } = result.error;
    return { verdict: "invalid", rules: [], error: { code, message } };
  }
  const strongest = Math.max(0, ...rules.map(({ verdict }) => VERDICTS.indexOf(verdict)));
  return { verdict: VERDICTS[strongest] ?? "deny", rules };
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
      const call = CallContext.callOf(context) ?? fail("explain a call", "it needs a dispatcher");
      const { tool: name, arguments: args } = given as { tool: string; arguments?: unknown };
      const { toolset, options: { signal: _, ...options } } = call;
      const dispatcher = { toolset, settings: call.settings as KernelSettings };
      return await explainCall(dispatcher, { name, arguments: args }, options);
    },
  };
}
