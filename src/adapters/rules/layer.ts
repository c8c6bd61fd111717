/** The layer that applies rules to calls. */

import { type CallStore, memoryCallStore } from "../../execute/durable/mod.ts";
import type * as calls from "../../execute/mod.ts";
import { note } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { attemptOr, fail, isThenable, once, type Tool, type ToolLabels } from "../../tool/mod.ts";
import { CallFacts, deny, type Marks, readVerdict, type Rule, type Verdict } from "./rule.ts";
import { SessionStore } from "./sessions.ts";
import { type GivenLabels, ownLabels, readLabels, toolMatcher, toolsBehind } from "./tools.ts";

/** Options for {@linkcode rules}. */
export interface RulesOptions {
  /** Stores labels. Calls that need it fail if it fails or is full. @default {memoryCallStore()} */
  readonly store?: CallStore | undefined;
  /** The lifetime of labels after their last change, in milliseconds. @default {2_592_000_000} */
  readonly sessionTtlMs?: number | undefined;
  /**
   * Labels by id: `{ "web:*": { produces: ["untrusted"] } }`. Each field replaces that of the tool's
   * own labels. The first pattern that matches counts.
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
  labels: check.createCheck("an object", check.isObject) as check.Check<
    NonNullable<RulesOptions["labels"]>
  >,
};

/**
 * Creates a layer that decides on calls, for the option `rules` of `ToolDispatcher`: after the
 * arguments were repaired and validated, and before approval. A denial wins over a question, and a
 * question over `"allow"`. A call for which a rule asks needs approval, like a call of a tool with
 * `requiresApproval`. Resumed calls are decided again. Listings never call rules, and calls of tools
 * without a rule and without labels cost nothing. Stage `run`.
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
export function rules(list: readonly Rule[], options: RulesOptions = {}): calls.Layer {
  const fields = check.readFields(ACTION, options, CHECKS);
  const { store = memoryCallStore(), sessionTtlMs = 30 * 86_400_000, labels = {} } = fields;
  check.checkPort(ACTION, "store", store, ["get", "create", "update", "delete"]);
  const patterns = Object.entries(labels).map(([pattern, given]) =>
    [toolMatcher(ACTION, pattern, "the id"), readLabels(ACTION, given)] as const
  );
  const engine = new RuleEngine(checkRules(list), new SessionStore(store, sessionTtlMs), patterns);
  const layer: calls.Layer = { name: "rules", stage: "run", for: (tool) => engine.for(tool) };
  engines.set(layer, engine);
  return layer;
}

/** The rules of each layer, for explanations. */
export const engines: WeakMap<calls.Layer, RuleEngine> = new WeakMap();

function checkRules(list: unknown): readonly Rule[] {
  if (!Array.isArray(list)) fail(ACTION, "the rules must be a list");
  const names = new Set<unknown>();
  return list.map((rule: Rule, index) => {
    const { name, decide }: Partial<Rule> = Object(rule);
    check.checkWord(ACTION, name, `"/${index}/name"`);
    check.checkFunction(ACTION, decide, `"/${index}/decide"`);
    if (names.has(name)) fail(ACTION, `"/${index}/name" is the name of another rule`);
    names.add(name);
    return rule;
  });
}

/** The rules and the labels of one tool. */
interface ToolRules {
  /** The tool that runs: for a view, its original. */
  readonly original: Tool;
  readonly labels: Required<ToolLabels>;
  readonly applied: readonly Rule[];
  readonly usesSession: boolean;
  /** The marks that a call sets when its tool begins, and when it succeeds. */
  readonly began: readonly string[];
  readonly succeeded: readonly string[];
}

/** A denial with the name of its rule, or the questions of all rules. */
interface Decision {
  readonly denied?: string;
  readonly by?: string;
  readonly asks: readonly string[];
}

type LabelPatterns = readonly (readonly [(tool: Tool) => boolean, GivenLabels])[];

export class RuleEngine {
  readonly #rules: readonly Rule[];
  readonly #store: SessionStore;
  readonly #labels: LabelPatterns;
  readonly #tools: WeakMap<Tool, ToolRules> = new WeakMap();

  constructor(list: readonly Rule[], store: SessionStore, labels: LabelPatterns) {
    this.#rules = list;
    this.#store = store;
    this.#labels = labels;
  }

  for(tool: Tool): calls.LayerFunction | undefined {
    const own = this.#rulesOf(tool);
    if (own.applied.length + own.began.length === 0) return undefined;
    return (call, next) =>
      own.usesSession
        ? call.wait("reading its session", () => this.#store.marksOf(call))
          .then((marks) => this.#decide(call, next, own, marks))
        : this.#decide(call, next, own);
  }

  async explain(call: calls.Call): Promise<readonly RuleVerdict[]> {
    const own = this.#rulesOf(call.tool);
    const facts = new CallFacts(call, own.original, own.labels, await this.#store.marksOf(call));
    return await Promise.all(own.applied.map(async (rule) => {
      const verdict = await verdictOf(rule, facts, call);
      if (verdict === "allow") return { rule: rule.name, verdict };
      const [[kind, reason] = []] = Object.entries(verdict);
      return { rule: rule.name, verdict: kind, reason } as RuleVerdict;
    }));
  }

  #rulesOf(tool: Tool): ToolRules {
    return once(this.#tools, tool, () => {
      const tools = toolsBehind(tool);
      const original = tools.at(-1) ?? tool;
      const [, given] = this.#labels.find(([is]) => tools.some(is)) ?? [];
      const labels = { ...ownLabels(original), ...given };
      // A function that throws must not exempt a tool.
      const concerning = (name: "appliesTo" | "remembers", otherwise: boolean) =>
        this.#rules.filter((rule) =>
          tools.some((one) => attemptOr(true, () => (rule[name]?.(one) ?? otherwise) !== false))
        );
      const applied = concerning("appliesTo", true);
      const remembering = concerning("remembers", false).map(({ name }) => name);
      const carried = [...labels.produces, ...labels.reads].map((label) => `label ${label}`);
      return {
        ...{ original, labels, applied },
        usesSession: applied.some(({ usesSession }) => usesSession),
        began: [...carried, ...remembering.map((name) => `began ${name}`)],
        succeeded: remembering.map((name) => `succeeded ${name}`),
      };
    });
  }

  #decide(call: calls.Call, next: calls.Next, own: ToolRules, marks?: Marks): calls.Outcome {
    const facts = new CallFacts(call, own.original, own.labels, marks);
    const decision = judge(own.applied, (rule) => verdictOf(rule, facts, call));
    return isThenable(decision)
      ? call.wait("waiting for a rule", decision)
        .then((made) => this.#approve(call, next, own, made))
      : this.#approve(call, next, own, decision);
  }

  #approve(call: calls.Call, next: calls.Next, own: ToolRules, made: Decision): calls.Outcome {
    const { denied: reason, by: name, asks } = made;
    if (reason !== undefined) {
      note(call, { by: "rule", name, verdict: "deny", reason });
      return call.fail("denied", `the rule "${name}" denies it: ${reason}`);
    }
    if (asks.length === 0) return this.#run(call, next, own);
    // Layers have no access to each other, so the layer of approval is found in the settings.
    const { layers } = call.settings as calls.KernelSettings;
    const approval = layers.find(({ meets }) => meets === "approval");
    const approve = approval?.for?.(call.tool, call.host);
    if (approve === undefined) {
      return call.fail("approval_required", "a rule requires approval, and no approver is set up");
    }
    const message = `Run the tool "${own.original.id}"? ${asks.join("; ")}`;
    const run: calls.Next = () => this.#run(call, next, own);
    return (approve as calls.ApprovalFunction)(call, run, message);
  }

  /** Marks the session, and runs the rest. The marks are removed if the tool did not run. */
  #run(call: calls.Call, next: calls.Next, { began, succeeded }: ToolRules): calls.Outcome {
    if (began.length === 0) return next(call);
    const doing = "labelling its session";
    return call.wait(doing, () => this.#store.mark(call, began)).then(async () => {
      const result = await next(call);
      // A result that another layer has stored counts, too.
      if (!result.ok && call.toolState === "not started") {
        call.defer(() => this.#store.unmark(call, began));
      } else if (result.ok && succeeded.length > 0) {
        // The tool has run, so its result is not lost. Without the mark, onlyAfter still denies.
        await call.wait(doing, () => this.#store.mark(call, succeeded))
          .catch((error) => call.report("rule", error));
      }
      return result;
    });
  }
}

/** Decides by the rules in their order, from `start` on, until one denies. */
function judge(
  list: readonly Rule[],
  verdictOf: (rule: Rule) => Verdict | Promise<Verdict>,
  start = 0,
  asks: string[] = [],
): Decision | Promise<Decision> {
  for (let index = start; index < list.length; index++) {
    const rule = list[index] as Rule;
    const verdict = verdictOf(rule);
    if (verdict instanceof Promise) {
      return verdict.then((made) =>
        denialBy(rule, made, asks) ?? judge(list, verdictOf, index + 1, asks)
      );
    }
    const denial = denialBy(rule, verdict, asks);
    if (denial !== undefined) return denial;
  }
  return { asks };
}

/** Returns the denial of a rule; adds its question to `asks`. */
function denialBy({ name }: Rule, verdict: Verdict, asks: string[]): Decision | undefined {
  if (verdict === "allow") return undefined;
  if ("deny" in verdict) return { denied: verdict.deny, by: name, asks };
  asks.push(verdict.ask);
  return undefined;
}

/** Returns the verdict of a rule: a denial if it throws, rejects or returns another value. */
function verdictOf(rule: Rule, facts: CallFacts, call: calls.Call): Verdict | Promise<Verdict> {
  const failed = (error: unknown): Verdict => {
    call.report("rule", error);
    return deny("it failed; the arguments are not the cause");
  };
  try {
    const answer: unknown = rule.decide(facts);
    return isThenable(answer)
      ? Promise.resolve(answer).then(readVerdict).catch(failed)
      : readVerdict(answer);
  } catch (error) {
    return failed(error);
  }
}
