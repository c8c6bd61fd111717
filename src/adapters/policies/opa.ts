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

/** A loaded program: what `loadPolicy` of `@open-policy-agent/opa-wasm` gives. */
export interface OpaProgram {
  /** Answers a result set. */
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
  /** Which rule decides, for a program that was compiled with several. */
  readonly entrypoint?: string | undefined;
  /** What the rule is told beside `input.tool`, such as who calls. JSON. */
  readonly input?: { readonly [field: string]: unknown } | undefined;
}

const ACTION = "make an OPA policy";

const CHECKS = { name: checkText, entrypoint: checkText, input: checkTold };

/** What a rule decides about a tool. */
interface Verdict {
  readonly allow?: unknown;
  readonly requiresApproval?: unknown;
  readonly reason?: unknown;
}

const VERDICT = Object.keys(
  { allow: 0, requiresApproval: 0, reason: 0 } satisfies Record<keyof Verdict, 0>,
);

/**
 * Makes a policy of a Rego rule, compiled with `opa build -t wasm`. The rule sees `input.tool`
 * (see {@linkcode ToolFacts}) and the fields of `input`. It gives a boolean, or an object with
 * `allow`, and perhaps `reason` (a text or a list of texts, which `explain` shows) and
 * `requiresApproval` (calls of the tool need approval). The tool is denied where the rule is undefined
 * or its object has another field.
 *
 * The program is evaluated again by each selection, listing, export and call, so new data takes
 * effect at once. Where that is too slow, add a revision that changes with the data:
 * `{ ...opaPolicy(program), revision: () => version }`.
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
 * @throws {TypeError} If the program is not loaded, or an option is wrong.
 */
export function opaPolicy(program: OpaProgram, options: OpaPolicyOptions = {}): ToolPolicy {
  if (isThenable(program)) {
    refuse(ACTION, "its program is a promise: await loadPolicy(…) first");
  }
  if (!isFunction(program?.evaluate)) {
    refuse(ACTION, "it needs what loadPolicy of @open-policy-agent/opa-wasm gives");
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
        : "its rule does not give true";
    },
  });
}

/** The verdict in a result set; `undefined` where the rule is undefined. */
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
    `the rule must give a boolean or an object with "allow", not ${describe(result)}`,
  );
}
