/** Rules that are ready to use: each is a document with one more condition. */

import { describe, fail, isText } from "../../tool/mod.ts";
import { argumentCondition, type RuleDocument, ruleOf } from "./document.ts";
import { describeEarlier, type Rule } from "./rule.ts";
import { toolMatcher, type ToolPattern } from "./tools.ts";

/** Options for a rule on an argument. */
export interface ArgumentRuleOptions extends RuleDocument {
  /** The argument, as a JSON Pointer: `/amount`. */
  readonly argument: string;
}

/**
 * Creates a rule on an amount, which must be a number from 0 to `most`. Other calls need approval,
 * including calls whose amount is a text or absent.
 */
export function amountAtMost(most: number, { argument, ...rest }: ArgumentRuleOptions): Rule {
  const isWithin = (amount: unknown): boolean =>
    typeof amount === "number" && amount >= 0 && amount <= most;
  const problem = `is not a number from 0 to ${most}`;
  const condition = argumentCondition(argument, "/argument", problem, isWithin);
  return ruleOf({ name: `amountAtMost ${most}`, else: "ask", ...rest }, [condition]);
}

/** Creates a rule that allows its tools only after an `earlier` tool has succeeded in the session. */
export function onlyAfter(earlier: ToolPattern, options: RuleDocument): Rule {
  return orderRule("onlyAfter", earlier, options);
}

/** Creates a rule that denies its tools after an `earlier` tool has run in the session, or failed. */
export function neverAfter(earlier: ToolPattern, options: RuleDocument): Rule {
  return orderRule("neverAfter", earlier, options);
}

function orderRule(kind: string, earlier: ToolPattern, options: RuleDocument): Rule {
  const text = JSON.stringify(earlier);
  const remembers = toolMatcher(`use ${kind}`, earlier, "the earlier tool");
  const rule = ruleOf({ name: `${kind} ${text}`, ...options }, [(call) => {
    const { began, succeeded } = call.remembered(rule.name);
    if (kind === "neverAfter") {
      return began && `it may not run in its session after ${describeEarlier(began)}`;
    }
    return succeeded ? undefined : `it may run only after ${text} in its session`;
  }]);
  return { ...rule, usesSession: true, remembers };
}

/**
 * Creates a rule on a path, or a list of paths, each of which must be one of the folders or in one.
 * Paths with `..`, a backslash, control characters or encoded separators are denied, and so are paths
 * that another Unicode form moves out of the folders. Two or more `/` count as one. Symbolic links are
 * not resolved.
 *
 * @param folders Absolute paths, with `/` between names.
 */
export function pathWithin(
  folders: string | readonly string[],
  { argument, ...rest }: ArgumentRuleOptions,
): Rule {
  const list = [folders].flat();
  const roots = list.map((folder) =>
    plainPath(folder) ?? fail("use pathWithin", `${describe(folder)} must be an absolute path`)
  );
  const isBelow = (path: string | undefined): boolean =>
    roots.some((root) => path === root || path?.startsWith(`${root}/`));
  const isWithin = (path: unknown): boolean =>
    isText(path) &&
    (SIMPLE.test(path)
      ? isBelow(path)
      : ["NFC", "NFKC"].every((form) => isBelow(plainPath(path.normalize(form)))));
  const areWithin = (value: unknown): boolean =>
    Array.isArray(value) ? value.length > 0 && value.every(isWithin) : isWithin(value);
  const problem = `must be within ${list.join(" or ")}`;
  const condition = argumentCondition(argument, "/argument", problem, areWithin);
  return ruleOf({ name: `pathWithin ${list.join(" ")}`, ...rest }, [condition]);
}

/** Paths of letters, digits, `_`, `-`, and dots within names, for which no other test is needed. */
const SIMPLE = /^(?:\/[\w-][\w.-]*)+$/;
/** Control characters, backslashes, encoded dots, separators, zeros and percent signs. */
const UNSAFE = /[\p{Cc}\p{Cf}\\]|%(?:2[5ef]|5c|00|u|c[01])/iu;
const PARENT = /\/\s*\.\.+\s*(?:[/;?#:]|$)/;

/** Returns an absolute path without empty names; `undefined` if it is not one, or is ambiguous. */
function plainPath(path: unknown): string | undefined {
  return isText(path) && path.startsWith("/") && !UNSAFE.test(path) && !PARENT.test(path)
    ? path.replace(/\/(?:\.?\/)+/g, "/").replace(/\/\.?$/, "")
    : undefined;
}

/**
 * Creates a rule against data theft: once a session has read private data and untrusted data, a tool
 * that sends needs approval. The message names the calls that brought the data. The labels come from
 * `labels` of the tools and of {@linkcode rules}.
 */
export function noTrifecta(options: Partial<RuleDocument> = {}): Rule {
  return ruleOf({ name: "noTrifecta", tool: "*", else: "ask", ...options, noTrifecta: true }, []);
}
