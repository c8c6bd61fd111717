/** Rules that are ready to use. */

import { anyValue, checkWord, describe, fail, isText, oneOf, readFields } from "../../tool/mod.ts";
import { ask, deny, type EarlierCall, type Rule, type RuleCall, type Verdict } from "./rule.ts";
import { pointerReader, toolMatcher, type ToolPattern } from "./tools.ts";

/** Options for ready rules. */
export interface RuleOptions {
  /** Unique in a list of rules. By default, the function with its first parameter. */
  readonly name?: string | undefined;
  /** The tools of the rule. */
  readonly tool: ToolPattern;
  /**
   * The verdict on a call that breaks the rule.
   *
   * @default {"ask"} for `noTrifecta` and `amountAtMost`, `"deny"` for the others
   */
  readonly else?: "ask" | "deny" | undefined;
}

/** Options for a rule on an argument. */
export interface ArgumentRuleOptions extends RuleOptions {
  /** The argument, as a JSON Pointer: `/amount`. */
  readonly argument: string;
}

const CHECKS = { name: checkWord, tool: anyValue, else: oneOf(["ask", "deny"] as const) };

/** Creates a rule from a function that returns the problem of a call. */
function ruleOf(
  kind: string,
  usual: "ask" | "deny",
  options: RuleOptions,
  problemOf: (call: RuleCall, name: string) => string | undefined,
): Rule {
  const action = `use ${kind}`;
  const { name = kind, tool, else: otherwise = usual } = readFields(action, options, CHECKS);
  return {
    name,
    appliesTo: toolMatcher(action, tool, '"/tool"'),
    decide(call): Verdict {
      const problem = problemOf(call, name);
      if (problem === undefined) return "allow";
      return otherwise === "ask" ? ask(problem) : deny(problem);
    },
  };
}

/**
 * Creates a rule on an amount, which must be a number from 0 to `most`. Other calls need approval,
 * also those whose amount is a text or absent.
 */
export function amountAtMost(most: number, { argument, ...rest }: ArgumentRuleOptions): Rule {
  const kind = `amountAtMost ${most}`;
  const valueIn = pointerReader(`use ${kind}`, argument, '"/argument"');
  return ruleOf(kind, "ask", rest, (call) => {
    const amount = valueIn(call.arguments);
    const isWithin = typeof amount === "number" && amount >= 0 && amount <= most;
    return isWithin ? undefined : `its argument "${argument}" is not a number from 0 to ${most}`;
  });
}

/** Creates a rule that allows its tools only after an `earlier` tool has succeeded in the session. */
export function onlyAfter(earlier: ToolPattern, options: RuleOptions): Rule {
  return orderRule(
    `onlyAfter ${JSON.stringify(earlier)}`,
    earlier,
    options,
    ({ succeeded }) =>
      succeeded.length > 0
        ? undefined
        : `it may run only after ${JSON.stringify(earlier)} in its session`,
  );
}

/** Creates a rule that denies its tools after an `earlier` tool has run in the session, or failed. */
export function neverAfter(earlier: ToolPattern, options: RuleOptions): Rule {
  return orderRule(
    `neverAfter ${JSON.stringify(earlier)}`,
    earlier,
    options,
    ({ began }) =>
      began.length === 0 ? undefined : `it may not run in its session after ${firstOf(began)}`,
  );
}

function orderRule(
  kind: string,
  earlier: ToolPattern,
  options: RuleOptions,
  problemOf: (calls: ReturnType<RuleCall["remembered"]>) => string | undefined,
): Rule {
  return {
    ...ruleOf(kind, "deny", options, (call, name) => problemOf(call.remembered(name))),
    usesSession: true,
    remembers: toolMatcher(`use ${kind}`, earlier, "the earlier tool"),
  };
}

function firstOf([call]: readonly EarlierCall[]): string {
  return `call ${describe(call?.callId)} of ${describe(call?.tool)}`;
}

/**
 * Creates a rule on a path, or a list of paths, each of which must be one of the folders or in one.
 * Paths with `..`, a backslash, control characters or encoded separators are denied, and so are paths
 * that another Unicode form moves out of the folders. Symbolic links are not resolved.
 *
 * @param folders Absolute paths, with `/` between names.
 */
export function pathWithin(
  folders: string | readonly string[],
  options: ArgumentRuleOptions,
): Rule {
  const { argument, ...rest } = options;
  const list = [folders].flat();
  const kind = `pathWithin ${list.join(" ")}`;
  const roots = list.map((folder) =>
    plainPath(folder) ?? fail(`use ${kind}`, `${describe(folder)} must be an absolute path`)
  );
  const isWithin = (path: unknown): boolean =>
    isText(path) && formsOf(path).every((form) => {
      const plain = plainPath(form);
      return roots.some((root) => plain === root || plain?.startsWith(`${root}/`));
    });
  const valueIn = pointerReader(`use ${kind}`, argument, '"/argument"');
  return ruleOf(kind, "deny", rest, (call) => {
    const paths = [valueIn(call.arguments)].flat();
    const isAllowed = paths.length > 0 && paths.every(isWithin);
    return isAllowed ? undefined : `its argument "${argument}" must be within ${list.join(" or ")}`;
  });
}

const PLAIN = /^[ -~]*$/;

function formsOf(path: string): readonly string[] {
  return PLAIN.test(path) ? [path] : [path.normalize("NFC"), path.normalize("NFKC")];
}

const HIDDEN = /[\p{Cc}\p{Cf}]/u;
/** Backslashes, and encoded dots, separators, zeros and percent signs. */
const UNSAFE = /\\|%(?:2[5ef]|5c|00|u|c[01])/i;
const PARENT = /\/\s*\.\.+\s*(?:[/;?#:]|$)/;

/** Returns an absolute path without empty names; `undefined` if it is not one, or is ambiguous. */
function plainPath(path: unknown): string | undefined {
  if (!isText(path) || !path.startsWith("/")) return undefined;
  const isHidden = !PLAIN.test(path) && HIDDEN.test(path);
  return isHidden || UNSAFE.test(path) || PARENT.test(path)
    ? undefined
    : path.replace(/\/(?:\.?\/)+/g, "/").replace(/\/\.?$/, "");
}

/**
 * Creates a rule against data theft: once a session has read private data and untrusted data, a tool
 * that sends needs approval. The message names the calls that brought the data. The labels come from
 * `labels` of the tools and of {@linkcode rules}.
 */
export function noTrifecta(options: Partial<RuleOptions> = {}): Rule {
  const rule = ruleOf("noTrifecta", "ask", { tool: "*", ...options }, (call) => {
    const { labels, toolLabels: { reads = [], sends }, tool: { id }, callId } = call;
    // A tool may read private data and send it in one call.
    const own = reads.includes("private") ? [{ tool: id, callId }] : undefined;
    const secret = labels.get("private") ?? own;
    const untrusted = labels.get("untrusted");
    if (sends !== true || untrusted === undefined || secret === undefined) return undefined;
    const sources = `private data by ${firstOf(secret)}, and untrusted data by ${
      firstOf(untrusted)
    }`;
    return `It can send data out of a session that has read ${sources}`;
  });
  return { ...rule, usesSession: true };
}
