/**
 * A policy that Cedar decides.
 *
 * @module
 */

import type { ToolPolicy } from "../../select/mod.ts";
import {
  attempt,
  type Check,
  checkText,
  copyJson,
  isFunction,
  isObject,
  isWord,
  must,
  readFields,
  refuse,
  type Tool,
} from "../../tool/mod.ts";
import { checkTold, toolFacts } from "./tool_facts.ts";

/** The engine's answer to a call that failed. */
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
   * contain the names. Cedar numbers policies without names: `policy0`.
   */
  readonly policies: string | { readonly [name: string]: string };
  /** The caller. */
  readonly principal: CedarEntity;
  /**
   * The requested action.
   *
   * @default {{ type: "Action", id: "call" }}
   */
  readonly action?: CedarEntity | undefined;
  /** The value of `context` in policies. JSON without null. */
  readonly context?: { readonly [field: string]: unknown } | undefined;
  /** The principal's attributes and groups, in Cedar's JSON format. */
  readonly entities?: readonly object[] | undefined;
  /**
   * Names the policy in explanations.
   *
   * @default {"cedar"}
   */
  readonly name?: string | undefined;
}

const ACTION = "make a Cedar policy";

const checkEntity: Check<CedarEntity> = must(
  'an object with "type" and "id", which are strings that are not empty',
  (value): value is CedarEntity => isObject(value) && isWord(value["type"]) && isWord(value["id"]),
);

const CHECKS = {
  policies: must(
    "a text, or an object of texts",
    (value): value is CedarPolicyOptions["policies"] =>
      isWord(value) || isObject(value) && Object.values(value).every(isWord),
  ),
  principal: checkEntity,
  action: checkEntity,
  context: checkTold,
  entities: must(
    "a list of objects",
    (value): value is readonly object[] => Array.isArray(value) && value.every(isObject),
  ),
  name: checkText,
};

/**
 * Creates a tool policy from Cedar policies. The resource is `Tool::"id"`, and its attributes are
 * {@linkcode ToolFacts}. A tool is allowed if Cedar permits the action on it and no policy failed:
 * Cedar itself would skip a `forbid` that fails.
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
 * assert.match(toolset.explain("rm").reason, /policy cedar denies it: nothing permits it/);
 * ```
 *
 * @param engine The module `@cedar-policy/cedar-wasm`, or its `/nodejs` or `/web`.
 * @returns The policy. Policies are parsed once per text. The options are copied: for other entities,
 * make another policy.
 * @throws {TypeError} If an option is invalid, or Cedar cannot parse the policies.
 */
export function cedarPolicy(engine: CedarEngine, options: CedarPolicyOptions): ToolPolicy {
  if (!isFunction(engine?.statefulIsAuthorized) || !isFunction(engine.preparsePolicySet)) {
    refuse(ACTION, "it needs the module @cedar-policy/cedar-wasm, loaded");
  }
  const fields = readFields(ACTION, options, CHECKS);
  const { policies, name = "cedar" } = fields;
  if (policies === undefined) refuse(ACTION, "it needs policies, in Cedar's language");
  if (fields.principal === undefined) refuse(ACTION, "it needs a principal, the caller");
  const { principal, action = { type: "Action", id: "call" }, context = {}, entities = [] } =
    fields;
  // A copy, because the cached decisions require a request that never changes.
  const request = attempt(
    ACTION,
    () => copyJson({ principal, action, context, entities }, "its request"),
  );
  const preparsedPolicySetId = parsed(engine, policies);
  /** Returns the reason for a denial, or `undefined` if the tool is permitted. */
  const denial = (tool: Tool): string | undefined => {
    const resource = { type: "Tool", id: tool.id };
    const answer = engine.statefulIsAuthorized({
      ...{ ...request, resource, preparsedPolicySetId },
      entities: [...request.entities, { uid: resource, attrs: toolFacts(tool), parents: [] }],
    });
    if (answer.type === "failure") return `Cedar cannot decide: ${messagesOf(answer)}`;
    const { decision, diagnostics: { reason, errors } } = answer.response;
    const [failed] = errors;
    if (failed !== undefined) return `${failed.policyId} failed: ${failed.error.message}`;
    if (decision === "allow") return undefined;
    return reason.length === 0
      ? "nothing permits it"
      : `forbidden by ${[...reason].sort().join(", ")}`;
  };
  const policy = {
    name,
    allow: (tool: Tool | null | undefined) => tool ? denial(tool) === undefined : false,
    reason: (tool: Tool) => denial(tool) ?? "",
  };
  // Not enumerable: a copy with another `allow` must not have it.
  return Object.freeze(Object.defineProperty(policy, "revision", { value: 0 }));
}

/** The ids of the policy sets that an engine has parsed, by text. */
interface ParsedTexts {
  readonly ids: Map<string, string>;
  /** Another copy of plue may use the same engine, and must not replace policies of this one. */
  readonly prefix: string;
}

/**
 * The engine stores parsed policies under an id and never deletes them, so each text is parsed
 * once.
 */
const parsedTexts = new WeakMap<CedarEngine["preparsePolicySet"], ParsedTexts>();

function parsed(engine: CedarEngine, policies: CedarPolicyOptions["policies"]): string {
  const key = JSON.stringify(policies);
  let texts = parsedTexts.get(engine.preparsePolicySet);
  if (texts === undefined) {
    texts = { ids: new Map(), prefix: crypto.randomUUID() };
    parsedTexts.set(engine.preparsePolicySet, texts);
  }
  const known = texts.ids.get(key);
  if (known !== undefined) return known;
  const id = `${texts.prefix}-${texts.ids.size}`;
  const answer = engine.preparsePolicySet(id, {
    staticPolicies: typeof policies === "string" ? policies : { ...policies },
  });
  if (answer.type === "failure") refuse(ACTION, `its policies are invalid: ${messagesOf(answer)}`);
  texts.ids.set(key, id);
  return id;
}

function messagesOf({ errors }: CedarFailure): string {
  return errors.map(({ message }) => message).join("; ");
}
