/** A rule, its verdict, and the call that it decides on. */

import { type Call, type CallInfo, CallView } from "../../execute/mod.ts";
import type { Explainer, Toolset } from "../../select/mod.ts";
import { fail, isObject, isWord, once, type Tool, type ToolLabels } from "../../tool/mod.ts";

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

/** The labels of a session, and the calls that rules remember: the first calls of each. */
export interface Marks {
  readonly [mark: string]: readonly EarlierCall[];
}

/** A call on which rules decide. `tool` and `arguments` are those of the tool that runs. */
export interface RuleCall extends CallInfo {
  /** The labels of the tool: the operator's, else its own. */
  readonly toolLabels: ToolLabels;
  /** The member `tenant` of the host's context, if it is a text. */
  readonly tenant: string | undefined;
  /** The role and the scopes that the caller's tools were selected with. */
  readonly role: string | null | undefined;
  readonly scopes: readonly string[] | undefined;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
  /** The labels of the session, with the first calls that have brought each. */
  readonly labels: ReadonlyMap<string, readonly EarlierCall[]>;
  /** The first calls that a rule remembers: those whose tools began, and those that succeeded. */
  remembered(rule: string): Readonly<Record<"began" | "succeeded", readonly EarlierCall[]>>;
}

type Rights = Pick<RuleCall, "role" | "scopes">;
const rights: WeakMap<Toolset, Rights> = new WeakMap();

function rightsOf(toolset: Toolset): Rights {
  // The explainer gets the criteria. The last one of a name is the caller's.
  const read: Explainer = ({ steps }) =>
    Object.fromEntries(steps.map(({ criterion = [] }) => criterion));
  return once(rights, toolset, () => toolset.explain("", read) as never);
}

export class CallFacts extends CallView implements RuleCall {
  override readonly tool: Tool;
  readonly toolLabels: ToolLabels;
  readonly tenant: string | undefined;
  readonly #call: Call;
  readonly #marks: Marks | undefined;

  /** @param marks The session, if it was read. */
  constructor(call: Call, tool: Tool, toolLabels: ToolLabels, marks: Marks | undefined) {
    super(call);
    this.tool = tool;
    this.toolLabels = toolLabels;
    this.tenant = tenantOf(call);
    this.#call = call;
    this.#marks = marks;
  }

  get role(): string | null | undefined {
    return rightsOf(this.#call.toolset).role;
  }

  get scopes(): readonly string[] | undefined {
    return rightsOf(this.#call.toolset).scopes;
  }

  get now(): number {
    return this.#call.settings.clock.timestamp();
  }

  get labels(): ReadonlyMap<string, readonly EarlierCall[]> {
    const found = Object.entries(this.#session()).filter(([mark]) => mark.startsWith("label "));
    return new Map(found.map(([mark, calls]) => [mark.slice(6), calls]));
  }

  remembered(rule: string): ReturnType<RuleCall["remembered"]> {
    const marks = this.#session();
    return { began: marks[`began ${rule}`] ?? [], succeeded: marks[`succeeded ${rule}`] ?? [] };
  }

  #session(): Marks {
    return this.#marks ?? fail("read the session", "the rule does not set usesSession");
  }
}

export function tenantOf({ options: { context } }: Call): string | undefined {
  const tenant: unknown = isObject(context) ? context["tenant"] : undefined;
  return isWord(tenant) ? tenant : undefined;
}

/** Returns the verdict that a rule has returned. Throws for any other value. */
export function readVerdict(answer: unknown): Verdict {
  if (answer === "allow") return answer;
  const [[field, text] = [], ...others] = Object.entries(isObject(answer) ? answer : {});
  // A longer text is not cut: a person could approve a part that is not shown.
  if (others.length === 0 && isWord(text) && text.length <= 1_000) {
    if (field === "deny") return deny(text);
    if (field === "ask") return ask(text);
  }
  return fail("use the verdict of a rule", 'it must be "allow", deny(reason) or ask(message)');
}
