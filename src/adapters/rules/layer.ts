/** The layer that applies rules to calls. */

import { type CallStore, memoryCallStore } from "../../execute/durable/mod.ts";
import * as calls from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isThenable, type Tool, type ToolLabels } from "../../tool/mod.ts";
import { CallFacts, deny, type Marks, type Rule, type ToolRules } from "./rule.ts";
import { SessionStore } from "./sessions.ts";
import * as tools from "./tools.ts";

/** Options for {@linkcode rules}. */
export interface RulesOptions {
  /** Stores labels and counts. A call that needs it fails with it. @default {memoryCallStore()} */
  readonly store?: CallStore | undefined;
  /** The lifetime of a session after its last change, in milliseconds. @default {2_592_000_000} */
  readonly sessionTtlMs?: number | undefined;
  /**
   * Labels by id: `{ "web:*": { produces: ["untrusted"] } }`. Each field replaces the same field of
   * the tool's own labels. The first pattern that matches counts.
   */
  readonly labels?: { readonly [pattern: string]: ToolLabels } | undefined;
}

/** The verdict of one rule, for explanations. */
export interface RuleVerdict {
  readonly rule: string;
  readonly verdict: "allow" | "deny" | "ask";
  /** The reason of a denial, or the message of a question. */
  readonly reason?: string;
}

const ACTION = "make rules";

const CHECKS = {
  store: check.anyValue as check.Check<CallStore>,
  sessionTtlMs: check.numberFrom(1, Number.MAX_SAFE_INTEGER),
  labels: check.createCheck("an object", check.isObject),
};

/**
 * Creates the layers of rules, for the option `rules` of `ToolDispatcher`: one decides on calls after
 * the arguments were repaired and validated, and before approval; one labels sessions, next to the
 * tool. A denial wins over a question, and a question over `"allow"`. A call needs approval if
 * a rule returns a question, or if its tool has `requiresApproval`. Resumed calls are decided again.
 * Listings never call rules, and calls of tools without a rule and without labels cost nothing. Stage
 * `run`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { deny, type Rule, rules } from "@plue/tools/rules";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "rm", description: "Deletes.", execute: () => "deleted" }],
 * });
 * const ada: Rule = { name: "ada", decide: (call) => call.principal === "ada" ? "allow" : deny("ask Ada") };
 * const dispatcher = new ToolDispatcher(registry, { rules: rules([ada]) });
 *
 * const result = await dispatcher.dispatch({ name: "rm" }, { principal: "bob" });
 * assert.equal(!result.ok && result.error.code, "denied");
 * ```
 *
 * @throws {TypeError | RangeError} If a rule or an option is invalid.
 */
export function rules(
  list: readonly Rule[],
  options: RulesOptions = {},
): readonly [calls.Layer, calls.Layer] {
  const fields = check.readFields(ACTION, options, CHECKS);
  const { store = memoryCallStore(), sessionTtlMs = 30 * 86_400_000, labels = {} } = fields;
  check.checkPort(ACTION, "store", store, ["get", "create", "update", "delete"]);
  const patterns = Object.entries(labels).map(([pattern, own]): tools.LabelPattern => [
    tools.toolMatcher(ACTION, pattern, "the id"),
    tools.readLabels(ACTION, own as ToolLabels),
  ]);
  const checked = checkRules(list);
  const rulesFor: RulesFor = (tool) => tools.rulesOf(tool, checked, patterns);
  const sessions = new SessionStore(store, sessionTtlMs);
  return [decidingLayer(rulesFor, sessions), labellingLayer(rulesFor, sessions)];
}

function checkRules(list: unknown): readonly Rule[] {
  if (!Array.isArray(list)) fail(ACTION, "the rules must be a list");
  return list.map((rule: Rule, index) => {
    check.checkWord(ACTION, Object(rule).name, `"/${index}/name"`);
    check.checkFunction(ACTION, rule.decide, `"/${index}/decide"`);
    const isTaken = list.slice(0, index).some(({ name }) => name === rule.name);
    return isTaken ? fail(ACTION, `"/${index}/name" is the name of another rule`) : rule;
  });
}

type RulesFor = (tool: Tool) => ToolRules;

export interface RuleLayer extends calls.Layer {
  explain(call: calls.Call): Promise<readonly RuleVerdict[]>;
}

function decidingLayer(rulesFor: RulesFor, sessions: SessionStore): RuleLayer {
  const objectionsTo = (call: calls.Call, own: ToolRules, isDry: boolean) => {
    const count: CallFacts["count"] = (scope, most) => sessions.count(call, scope, most, isDry);
    const decide = (marks?: Marks) => {
      const facts = new CallFacts(call, own, count, marks);
      const made: (Objection | Promise<Objection>)[] = [];
      // Most rules allow most calls, so the list often stays empty: `map` and `filter` take 90 ns.
      for (const rule of own.applied) {
        const objection = objectionOf(rule, facts, call);
        if (objection !== undefined) made.push(objection);
      }
      const isLate = made.some((one) => one instanceof Promise);
      return isLate ? Promise.all(made) : made as readonly Objection[];
    };
    return own.usesSession ? sessions.marksOf(call).then(decide) : decide();
  };
  return {
    name: "rules",
    stage: "run",
    for(tool) {
      const own = rulesFor(tool);
      return own.applied.length === 0 ? undefined : (call, next) => {
        const objections = objectionsTo(call, own, false);
        return objections instanceof Promise
          ? call.wait("waiting for a rule", objections).then((all) => follow(all, call, next))
          : follow(objections, call, next);
      };
    },
    async explain(call) {
      const own = rulesFor(call.tool);
      const objections = await objectionsTo(call, own, true);
      return own.applied.map(({ name: rule }) =>
        objections.find((one) => one?.rule === rule) ?? { rule, verdict: "allow" }
      );
    },
  };
}

function labellingLayer(rulesFor: RulesFor, sessions: SessionStore): calls.Layer {
  const mark = (call: calls.Call, names: readonly string[]): Promise<void> =>
    call.wait("labelling its session", () => sessions.mark(call, names));
  return {
    name: "labels",
    stage: "run",
    for(tool) {
      const { began, succeeded } = rulesFor(tool);
      return began.length === 0 ? undefined : async (call, next) => {
        await mark(call, began);
        const result = await next(call);
        if (result.ok && succeeded.length > 0) {
          // The tool has run: its result is returned. Without the mark, onlyAfter denies later calls.
          await mark(call, succeeded).catch((error) => call.report("rule", error));
        }
        return result;
      };
    },
  };
}

type Objection = RuleVerdict | undefined;

/** Returns the objection of a rule: a denial if it throws, rejects or returns another value. */
function objectionOf(rule: Rule, facts: CallFacts, call: calls.Call) {
  const failed = (error: unknown): Objection => {
    call.report("rule", error);
    return readVerdict(rule, deny("it failed; the arguments are not the cause"));
  };
  try {
    const answer: unknown = rule.decide(facts);
    return isThenable(answer)
      ? Promise.resolve(answer).then((made) => readVerdict(rule, made)).catch(failed)
      : readVerdict(rule, answer);
  } catch (error) {
    return failed(error);
  }
}

function readVerdict({ name: rule }: Rule, answer: unknown): Objection {
  if (answer === "allow") return undefined;
  const [[verdict, reason] = [], ...others] = Object.entries(Object(answer));
  // A longer text is not cut: a person could approve a part that is not shown.
  const isReason = check.isWord(reason) && reason.length <= 1_000 && others.length === 0;
  return isReason && (verdict === "deny" || verdict === "ask")
    ? { rule, verdict, reason }
    : fail("use the verdict of a rule", 'it must be "allow", deny(reason) or ask(message)');
}

/** Ends a call that a rule denies, and requests approval of a call for which rules ask. */
function follow(made: readonly Objection[], call: calls.Call, next: calls.Next): calls.Outcome {
  const objections = made.filter((one) => one !== undefined);
  if (objections.length === 0) return next(call);
  const denial = objections.find(({ verdict }) => verdict === "deny");
  if (denial !== undefined) {
    const { rule: name, reason } = denial;
    calls.note(call, { by: "rule", name, verdict: "deny", reason });
    return call.fail("denied", `the rule "${name}" denies it: ${reason}`);
  }
  // Layers have no access to each other, so the layer of approval is found in the settings.
  const { layers } = call.settings as calls.KernelSettings;
  const approval = layers.find(({ meets }) => meets === "approval");
  const approve = approval?.for?.(call.tool, call.host) as calls.ApprovalFunction | undefined;
  const reasons = objections.map(({ reason }) => reason).join("; ");
  return approve === undefined
    ? call.fail("approval_required", "a rule requires approval, and the option approve is not set")
    : approve(call, next, `Run the tool "${tools.toolBehind(call.tool).id}"? ${reasons}`);
}
