/**
 * Policies that an engine decides: Open Policy Agent and Cedar. The engine is a parameter. Each policy
 * is also a rule of `@plue/tools/rules`, which decides on calls.
 *
 * @module
 */

import type { Rule, RuleCall } from "../rules/mod.ts";
import { POLICY_ADVICE, type ToolPolicy } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { copyJson, defined, fail, isFunction, isObject, type Tool } from "../../tool/mod.ts";

/** The facts about a tool that a policy engine receives, as JSON. */
export interface ToolFacts {
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly category?: string;
  readonly risk: check.RiskLevel;
  /** The risk as a number, to compare: 0 for `safe` up to 4 for `critical`. */
  readonly riskLevel: number;
  readonly tags: readonly string[];
  /** The roles of the tool. Absent for a tool without roles, which everyone may use. */
  readonly roles?: readonly string[];
  readonly scopes: readonly string[];
  readonly requiresApproval: boolean;
  readonly requiresTransaction: boolean;
}

/** Returns the facts about a tool. Missing fields are absent, because Cedar has no null. */
function toolFacts(tool: Tool): ToolFacts {
  const { id, name, namespace, category, risk, tags, roles, scopes } = tool;
  const { requiresApproval, requiresTransaction } = tool;
  return {
    ...{ id, name, risk, riskLevel: check.RISK_LEVELS.indexOf(risk), tags, scopes },
    ...{ requiresApproval, requiresTransaction },
    ...defined({ namespace, category, roles }),
  };
}

/** A policy for tools that is also a rule for calls. */
export type EnginePolicy = ToolPolicy & Rule;

/** Adds the fields of a rule. They are not enumerable: a copy with another `allow` lacks them. */
function asRule(policy: Omit<EnginePolicy, "decide">, decide: Rule["decide"]): EnginePolicy {
  const fields = { decide: { value: decide }, usesSession: { value: true } };
  return Object.freeze(Object.defineProperties(policy, fields)) as EnginePolicy;
}

/** Returns the facts about a call. Missing fields are absent. Throws if an argument is not JSON. */
function callFacts(call: RuleCall) {
  // As JSON, Infinity would be null, which Rego orders below all numbers.
  const input = copyJson(call.arguments, "the arguments");
  const { principal, tenant, scopes, sessionId: id, labels, now } = call;
  const session = { ...defined({ id }), labels: [...labels.keys()] };
  const caller = defined({ principal, tenant, role: call.role ?? undefined, scopes });
  return { input, session, caller, now };
}

const checkInput: check.Check<{ readonly [field: string]: unknown }> = check.createCheck(
  "an object",
  isObject,
);

/** A loaded program, as returned by `loadPolicy` of `@open-policy-agent/opa-wasm`. */
export interface OpaProgram {
  /** Returns a result set. */
  evaluate(input: unknown): unknown;
}

/** Options for {@linkcode opaPolicy}. */
export interface OpaPolicyOptions {
  /** Names the policy in explanations. @default {"opa"} */
  readonly name?: string | undefined;
  /** The rule's input in addition to `input.tool`, as JSON, for example the caller. */
  readonly input?: { readonly [field: string]: unknown } | undefined;
}

const MAKE_OPA = "make an OPA policy";
const RUN_OPA = "run the OPA program";

const OPA_CHECKS = { name: check.checkText, input: checkInput };

interface Decision {
  readonly allow?: unknown;
  readonly requiresApproval?: unknown;
  readonly reason?: unknown;
}

const VERDICT: readonly (keyof Decision)[] = ["allow", "requiresApproval", "reason"];

/**
 * Creates a policy from a Rego rule, compiled with `opa build -t wasm`. The rule receives
 * `input.tool` (see {@linkcode ToolFacts}) and the fields of `input`. It returns a boolean, or an
 * object with `allow` and optionally `reason` (a text or a list of texts for `explain`) and
 * `requiresApproval` (calls of the tool need approval). The tool is denied if the rule is undefined
 * or its object has other fields.
 *
 * Each selection, listing, export and call evaluates the program again, so new data takes effect
 * immediately. As a rule of `@plue/tools/rules`, the program receives the call in
 * `input.context`: the arguments as `input`, the `session` with its `id` and `labels`, the `caller`, and
 * `now`. A call of a tool with `requiresApproval` then needs approval. If selections are too slow, add a
 * revision that changes with the data: `{
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
 * @param program The loaded program. To use another entry point than the first, pass `{ evaluate:
 * (input) => program.evaluate(input, "name") }`.
 * @throws {TypeError} If the program is not loaded, or an option is invalid.
 */
export function opaPolicy(program: OpaProgram, options: OpaPolicyOptions = {}): EnginePolicy {
  if (check.isThenable(program)) {
    fail(MAKE_OPA, "the program is a promise; await loadPolicy(…) first");
  }
  if (!isFunction(program?.evaluate)) {
    fail(MAKE_OPA, "program must be the result of loadPolicy() of @open-policy-agent/opa-wasm");
  }
  const { name = "opa", input } = check.readFields(MAKE_OPA, options, OPA_CHECKS);
  const decide = (tool: Tool, call?: RuleCall): Decision | undefined => {
    const facts = { tool: toolFacts(tool), ...(call && { context: callFacts(call) }) };
    return verdictIn(check.assertSync(program.evaluate({ ...input, ...facts }), POLICY_ADVICE));
  };
  const asks = (decision: Decision | undefined) => (decision?.requiresApproval ?? false) !== false;
  return asRule({
    name,
    allow: (tool: Tool | null | undefined) => tool ? decide(tool)?.allow === true : false,
    requiresApproval: (tool: Tool) => asks(decide(tool)),
    reason: (tool: Tool) => reasonIn(decide(tool)),
  }, (call) => {
    const decision = decide(call.tool, call);
    if (decision?.allow !== true) return { deny: reasonIn(decision) };
    return asks(decision) ? { ask: reasonIn(decision, "the rule requires approval") } : "allow";
  });
}

function reasonIn(decision: Decision | undefined, usual = "the rule does not return true"): string {
  if (decision === undefined) return "the rule is undefined for this tool";
  const { reason } = decision;
  if (Array.isArray(reason) && reason.length > 0) return reason.join("; ");
  return typeof reason === "string" ? reason : usual;
}

function verdictIn(results: unknown): Decision | undefined {
  if (!Array.isArray(results)) {
    fail(RUN_OPA, `it must return a list, not ${check.describe(results)}`);
  }
  if (results.length === 0) return undefined;
  const result: unknown = results[0]?.result;
  if (typeof result === "boolean") return { allow: result };
  if (isObject(result)) {
    check.rejectUnknownFields("read the result of the rule", result, VERDICT);
    return result;
  }
  const wanted = 'the rule must return a boolean or an object with "allow"';
  return fail(RUN_OPA, `${wanted}, not ${check.describe(result)}`);
}

interface CedarFailure {
  readonly type: "failure";
  readonly errors: readonly { readonly message: string }[];
}

/** Cedar's decision. */
export type CedarAnswer = CedarFailure | {
  readonly type: "success";
  readonly response: {
    readonly decision: "allow" | "deny";
    readonly diagnostics: {
      readonly reason: readonly string[];
      readonly errors: readonly {
        readonly policyId: string;
        readonly error: { readonly message: string };
      }[];
    };
  };
};

/** The part of the module `@cedar-policy/cedar-wasm` that is used. */
export interface CedarEngine {
  preparsePolicySet(
    id: string,
    policies: { staticPolicies: string | Record<string, string> },
  ): CedarFailure | { readonly type: "success" };
  statefulIsAuthorized(call: object): CedarAnswer;
}

/** Names an entity of Cedar. */
export interface CedarEntity {
  readonly type: string;
  readonly id: string;
}

/** Options for {@linkcode cedarPolicy}. */
export interface CedarPolicyOptions {
  /**
   * The policies, in Cedar's language: one text, or an object of named policies. Explanations
   * contain the names. Without names, Cedar numbers the policies: `policy0`.
   */
  readonly policies: string | { readonly [name: string]: string };
  /** The caller. */
  readonly principal: CedarEntity;
  /** The requested action. @default {{ type: "Action", id: "call" }} */
  readonly action?: CedarEntity | undefined;
  /** The value of `context` in policies: JSON without `null`. */
  readonly context?: { readonly [field: string]: unknown } | undefined;
  /** The principal's attributes and groups, in Cedar's JSON format. */
  readonly entities?: readonly object[] | undefined;
  /** Names the policy in explanations. @default {"cedar"} */
  readonly name?: string | undefined;
}

const MAKE_CEDAR = "make a Cedar policy";

const checkEntity: check.Check<CedarEntity> = check.createCheck(
  'an object with "type" and "id", which are strings that are not empty',
  (value): value is CedarEntity =>
    isObject(value) && check.isWord(value["type"]) && check.isWord(value["id"]),
);

const CEDAR_CHECKS = {
  policies: check.createCheck(
    "a text, or an object of texts",
    (value): value is CedarPolicyOptions["policies"] =>
      check.isWord(value) || isObject(value) && Object.values(value).every(check.isWord),
  ),
  principal: checkEntity,
  action: checkEntity,
  context: checkInput,
  entities: check.createCheck(
    "a list of objects",
    (value): value is readonly object[] => Array.isArray(value) && value.every(isObject),
  ),
  name: check.checkText,
};

/**
 * Creates a tool policy from Cedar policies. The resource is `Tool::"id"`, and its attributes are
 * {@linkcode ToolFacts}. A tool is allowed if Cedar permits the action on it and no policy failed:
 * Cedar itself would skip a `forbid` that fails.
 *
 * As a rule of `@plue/tools/rules`, the policies decide on a call: its principal has the type of the
 * option and the id of the caller, and `context` has the arguments as `input`, the `session` with its
 * `id` and `labels`, the `caller`, and `now`. Cedar has neither null nor fractions, and it reserves the
 * names `__entity`, `__extn` and `__expr`: a call with such arguments is denied.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
 * import { ToolRegistry } from "@plue/tools";
 * import { cedarPolicy } from "@plue/tools/policies";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "read", description: "Reads.", risk: "low" }, { name: "rm", description: "Deletes." }],
 * });
 * const policies = `
 *   permit(principal, action == Action::"call", resource) when { resource.riskLevel < 2 };
 * `;
 * const ada = cedarPolicy(cedar, { policies, principal: { type: "User", id: "ada" } });
 *
 * const toolset = registry.select({ policies: [ada] });
 * assert.deepEqual(toolset.ids, ["read"]);
 * assert.match(toolset.explain("rm").reason, /policy cedar denies it: no policy permits/);
 * ```
 *
 * @param engine The module `@cedar-policy/cedar-wasm`, or its `/nodejs` or `/web`.
 * @returns The policy. Policies are parsed once per text. The options are copied, so make another
 * policy for other entities.
 * @throws {TypeError} If an option is invalid, or Cedar cannot parse the policies.
 */
export function cedarPolicy(engine: CedarEngine, options: CedarPolicyOptions): EnginePolicy {
  if (!isFunction(engine?.statefulIsAuthorized) || !isFunction(engine.preparsePolicySet)) {
    fail(MAKE_CEDAR, "engine must be the imported module @cedar-policy/cedar-wasm");
  }
  const fields = check.readFields(MAKE_CEDAR, options, CEDAR_CHECKS);
  const { policies, name = "cedar" } = fields;
  if (policies === undefined) fail(MAKE_CEDAR, "the option policies is missing");
  if (fields.principal === undefined) fail(MAKE_CEDAR, "the option principal is missing");
  const { principal, action = { type: "Action", id: "call" }, context = {}, entities = [] } =
    fields;
  // The request is copied, because cached decisions require a request that never changes.
  const inputs = { principal, action, context, entities };
  const request = check.attempt(MAKE_CEDAR, () => copyJson(inputs, "its request"));
  const preparsedPolicySetId = parsed(engine, policies);
  const ofCall = (call: RuleCall): object => ({
    principal: { type: principal.type, id: call.principal ?? principal.id },
    context: { ...request.context, ...callFacts(call) },
  });
  const denial = (tool: Tool, call?: RuleCall): string | undefined => {
    const resource = { type: "Tool", id: tool.id };
    const answer = engine.statefulIsAuthorized({
      ...{ ...request, ...(call && ofCall(call)), resource, preparsedPolicySetId },
      entities: [...request.entities, { uid: resource, attrs: toolFacts(tool), parents: [] }],
    });
    if (answer.type === "failure") return `Cedar cannot decide: ${messagesOf(answer)}`;
    const { decision, diagnostics: { reason, errors } } = answer.response;
    const [failed] = errors;
    if (failed !== undefined) return `${failed.policyId} failed: ${failed.error.message}`;
    if (decision === "allow") return undefined;
    return reason.length === 0
      ? "no policy permits the tool"
      : `forbidden by ${[...reason].sort().join(", ")}`;
  };
  const policy = {
    name,
    allow: (tool: Tool | null | undefined) => tool ? denial(tool) === undefined : false,
    reason: (tool: Tool) => denial(tool) ?? "",
  };
  // Not enumerable, so that a copy of the policy with another `allow` has no `revision`.
  return asRule(Object.defineProperty(policy, "revision", { value: 0 }), (call) => {
    // Cedar would interpret an object with such a member as an entity or a call.
    const isData = !/"__(?:entity|extn|expr)":/.test(JSON.stringify(call.arguments));
    const reason = isData ? denial(call.tool, call) : "an argument has a name that Cedar reserves";
    return reason === undefined ? "allow" : { deny: reason };
  });
}

/** The ids of parsed policies by their text: the engine never deletes the policies of an id. */
const parsedTexts = new WeakMap<CedarEngine["preparsePolicySet"], Map<string, string>>();

function parsed(engine: CedarEngine, policies: CedarPolicyOptions["policies"]): string {
  const key = JSON.stringify(policies);
  const ids = parsedTexts.get(engine.preparsePolicySet) ?? new Map<string, string>();
  parsedTexts.set(engine.preparsePolicySet, ids);
  const known = ids.get(key);
  if (known !== undefined) return known;
  // The id is random, because another copy of plue may use the same engine.
  const id = crypto.randomUUID();
  const answer = engine.preparsePolicySet(id, {
    staticPolicies: typeof policies === "string" ? policies : { ...policies },
  });
  if (answer.type === "failure") {
    fail(MAKE_CEDAR, `the policies are invalid: ${messagesOf(answer)}`);
  }
  ids.set(key, id);
  return id;
}

function messagesOf({ errors }: CedarFailure): string {
  return errors.map(({ message }) => message).join("; ");
}
