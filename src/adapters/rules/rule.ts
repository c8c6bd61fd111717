/** A rule, its verdict, and the call that it decides on. */

import { tenantOf } from "../../execute/durable/mod.ts";
import { type Call, CallView } from "../../execute/mod.ts";
import type { SchemaEngine } from "../../schema/mod.ts";
import type { Explainer, Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { describe, fail, type Tool } from "../../tool/mod.ts";

/** The verdict of a rule: the call may run, is denied, or needs approval. */
export type Verdict = "allow" | { readonly deny: string } | { readonly ask: string };

/** Denies a call, with a reason for the model of at most 1,000 characters. */
export function deny(reason: string): Verdict {
  return { deny: reason };
}

/**
 * Requires approval, with a reason for a person of at most 1,000 characters. An approval is valid for
 * its message, so the same call must have the same message again.
 */
export function ask(message: string): Verdict {
  return { ask: message };
}

/** A rule of {@linkcode rules}. */
export interface Rule {
  /** Unique in its list. */
  readonly name: string;
  /** Returns false for tools that the rule does not concern. Called for a view and its original. */
  appliesTo?(tool: Tool): boolean;
  /**
   * Decides on a call. The call is denied if this throws, rejects or returns another value. It must
   * have no effect: explanations call it, too.
   */
  decide(call: RuleCall): Verdict | Promise<Verdict>;
  /** True if `decide` reads `labels` or `remembered`, so that the session is read before. */
  readonly usesSession?: boolean;
  /** Returns true for the tools whose calls `remembered` returns. */
  remembers?(tool: Tool): boolean;
}

/** An earlier call of a session. */
export interface EarlierCall {
  readonly tool: string;
  readonly callId: string;
}

export function describeEarlier({ tool, callId }: EarlierCall): string {
  return `call ${describe(callId)} of ${describe(tool)}`;
}

/** The labels of a session, and the calls that rules remember: the first call of each. */
export type Marks = Readonly<Record<string, EarlierCall>>;

/** The calls that are counted together: the calls of a rule in one session or day. */
export type Scope = readonly [rule: string, per: "session" | "day", of: string | undefined];

export interface ToolRules {
  /** The tool that runs: for a view, its original. */
  readonly tool: Tool;
  readonly labels: Required<check.ToolLabels>;
  readonly applied: readonly Rule[];
  readonly usesSession: boolean;
  /** The marks that a call sets when its tool begins, and when it succeeds. */
  readonly began: readonly string[];
  readonly succeeded: readonly string[];
}

type Rights = { readonly role?: string | null; readonly scopes?: readonly string[] };
const rights: WeakMap<Toolset, Rights> = new WeakMap();

function rightsOf(toolset: Toolset): Rights {
  // The explainer gets the criteria. The last one of a name is the caller's.
  const read: Explainer = ({ steps }) =>
    Object.fromEntries(steps.map(({ criterion = [] }) => criterion));
  return check.once(rights, toolset, () => toolset.explain("", read) as never);
}

/** A call on which rules decide. `tool` is the tool that runs, with its `arguments`. */
export type RuleCall = Omit<CallFacts, "given" | "engine" | "count">;

export class CallFacts extends CallView {
  override readonly tool: Tool;
  /** The labels of the tool: the operator's, else its own. */
  readonly toolLabels: check.ToolLabels;
  /** The member `tenant` of the host's context: a text, or a whole number as a text. */
  readonly tenant: string | undefined;
  /** The arguments for conditions, which only read them: the copy for rules takes longer. */
  readonly sharedArguments: unknown;
  readonly engine: SchemaEngine;
  /** Counts the call in a scope, unless its tool does not run. Returns false at the maximum. */
  readonly count: (scope: Scope, most: number) => Promise<boolean>;
  readonly #call: Call;
  readonly #marks: Marks | undefined;

  constructor(call: Call, own: ToolRules, count: CallFacts["count"], marks: Marks | undefined) {
    super(call);
    this.tool = own.tool;
    this.toolLabels = own.labels;
    this.tenant = tenantOf(call.options.context);
    this.sharedArguments = call.arguments;
    this.engine = call.host.engine;
    this.count = count;
    this.#call = call;
    this.#marks = marks;
  }

  /** The role that the caller's tools were selected with. */
  get role(): string | null | undefined {
    return rightsOf(this.#call.toolset).role;
  }

  /** The scopes that the caller's tools were selected with. */
  get scopes(): readonly string[] | undefined {
    return rightsOf(this.#call.toolset).scopes;
  }

  /** The time, in milliseconds since 1970. */
  get now(): number {
    return this.#call.settings.clock.timestamp();
  }

  get labels(): ReadonlyMap<string, EarlierCall> {
    const found = Object.entries(this.#session).filter(([mark]) => mark.startsWith("label "));
    return new Map(found.map(([mark, call]) => [mark.slice(6), call]));
  }

  /** The first call that a rule remembers: the first whose tool began, and the first that succeeded. */
  remembered(rule: string): Readonly<Record<"began" | "succeeded", EarlierCall | undefined>> {
    const { [`began ${rule}`]: began, [`succeeded ${rule}`]: succeeded } = this.#session;
    return { began, succeeded };
  }

  get #session(): Marks {
    return this.#marks ?? fail("read the session", "the rule does not set usesSession");
  }
}
