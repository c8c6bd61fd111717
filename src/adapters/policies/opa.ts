/**
 * A policy that a compiled Rego program decides.
 *
 * @module
 */

import { POLICY_ADVICE, type ToolPolicy } from "../../select/mod.ts";
import {
  atOnce,
  checkText,
  describe,
  isFunction,
  isObject,
  isThenable,
  readFields,
  refuse,
  refuseOthers,
  type Tool,
} from "../../tool/mod.ts";
import { checkTold, toolFacts } from "./tool_facts.ts";

/** A loaded program, as returned by `loadPolicy` of `@open-policy-agent/opa-wasm`. */
export interface OpaProgram {
  /** Returns a result set. */
  evaluate(input: unknown, entrypoint?: number | string): unknown;
}

/** Options for {@linkcode opaPolicy}. */
export interface OpaPolicyOptions {
  /**
   * Names the policy in explanations.
   *
   * @default {"opa"}
   */
  readonly name?: string | undefined;
  /** The rule that decides, in a program that was compiled with several. */
  readonly entrypoint?: string | undefined;
  /** The rule's input in addition to `input.tool`, for example the caller. JSON. */
  readonly input?: { readonly [field: string]: unknown } | undefined;
}

const ACTION = "make an OPA policy";

const CHECKS = { name: checkText, entrypoint: checkText, input: checkTold };

/** A rule's decision about a tool. */
interface Verdict {
  readonly allow?: unknown;
  readonly requiresApproval?: unknown;
  readonly reason?: unknown;
}

const VERDICT = Object.keys(
  { allow: 0, requiresApproval: 0, reason: 0 } satisfies Record<keyof Verdict, 0>,
);

/**
 * Creates a policy from a Rego rule, compiled with `opa build -t wasm`. The rule receives
 * `input.tool` (see {@linkcode ToolFacts}) and the fields of `input`. It returns a boolean, or an
 * object with `allow` and optionally `reason` (a text or a list of texts for `explain`) and
 * `requiresApproval` (calls of the tool need approval). The tool is denied if the rule is undefined
 * or its object has other fields.
 *
 * Each selection, listing, export and call evaluates the program again, so new data takes effect
 * immediately. If that is too slow, add a revision that changes with the data: `{
 * ...opaPolicy(program), revision: () => version }`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { opaPolicy } from "@plue/tools/policies";
 *
 * // const program = await loadPolicy(await readFile("policy.wasm"));
 * const program = {
 *   evaluate: (input: { user: string; tool: { riskLevel: number } }) => [{
 *     result: { allow: input.tool.riskLevel < 2, reason: `${input.user} is a guest` },
 *   }],
 * };
 * const registry = new ToolRegistry({
 *   tools: [{ name: "read", description: "Reads.", risk: "low" }, { name: "rm", description: "Deletes." }],
 * });
 * const guests = opaPolicy(program, { input: { user: "ada" } });
 *
 * const toolset = registry.select({ policies: [guests] });
 * assert.deepEqual(toolset.ids, ["read"]);
 * assert.match(toolset.explain("rm").reason, /policy opa denies it: ada is a guest/);
 * ```
 *
 * @param program The program, loaded.
 * @returns The policy.
 * @throws {TypeError} If the program is not loaded, or an option is invalid.
 */
export function opaPolicy(program: OpaProgram, options: OpaPolicyOptions = {}): ToolPolicy {
  if (isThenable(program)) {
    refuse(ACTION, "its program is a promise: await loadPolicy(…) first");
  }
  if (!isFunction(program?.evaluate)) {
    refuse(ACTION, "it needs a program from loadPolicy of @open-policy-agent/opa-wasm");
  }
  const { name = "opa", entrypoint, input } = readFields(ACTION, options, CHECKS);
  const decide = (tool: Tool): Verdict | undefined => {
    const question = { ...input, tool: toolFacts(tool) };
    const results = entrypoint === undefined
      ? program.evaluate(question)
      : program.evaluate(question, entrypoint);
    return verdictIn(atOnce(results, POLICY_ADVICE));
  };
  return Object.freeze({
    name,
    allow: (tool: Tool | null | undefined) => tool ? decide(tool)?.allow === true : false,
    requiresApproval: (tool: Tool) => (decide(tool)?.requiresApproval ?? false) !== false,
    reason: (tool: Tool) => {
      const verdict = decide(tool);
      if (verdict === undefined) return "its rule is undefined for this tool";
      const { reason } = verdict;
      return Array.isArray(reason) && reason.length > 0
        ? reason.join("; ")
        : typeof reason === "string"
        ? reason
        : "its rule does not return true";
    },
  });
}

/** Returns the verdict in a result set, or `undefined` if the rule is undefined. */
function verdictIn(results: unknown): Verdict | undefined {
  if (!Array.isArray(results)) refuse("ask OPA", `it answered ${describe(results)}`);
  if (results.length === 0) return undefined;
  const result: unknown = results[0]?.result;
  if (typeof result === "boolean") return { allow: result };
  if (isObject(result)) {
    refuseOthers("read the result of the rule", result, VERDICT);
    return result;
  }
  return refuse(
    "ask OPA",
    `the rule must return a boolean or an object with "allow", not ${describe(result)}`,
  );
}
