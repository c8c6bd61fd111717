/**
 * The options of an import, their checks, and what an import gives.
 *
 * @module
 */

import {
  atOnce,
  type Check,
  checkRisk,
  clip,
  compareRisk,
  isListOf,
  isObject,
  isRiskLevel,
  isToolName,
  isWord,
  must,
  type RiskLevel,
  type Tool,
  type ToolAnnotations,
  type ToolContext,
  type ToolOutput,
  wholeFrom,
} from "../tool/mod.ts";

/** A note about an imported tool, or about the document. */
export interface ImportWarning {
  /** The id of the tool; absent if it concerns the document. */
  readonly tool?: string;
  /** Where, as a JSON Pointer into the document. */
  readonly path: string;
  /** What it is about, in one word: a field, a keyword, or a rule. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** An entry that could not be imported. The others were. */
export interface RejectedImport {
  /** The name in the document, if it has one. */
  readonly name: string | undefined;
  /** Where, as a JSON Pointer into the document. */
  readonly path: string;
  /** The rule that it broke, in one word. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/**
 * What an import gives.
 *
 * @typeParam Source The sources that it may be of.
 */
export interface ImportResult<Source extends string = string> {
  /** What the document was taken for; `undefined` if `auto` recognised nothing. */
  readonly source: Source | undefined;
  /** The tools, in the order of the document. */
  readonly tools: readonly Tool[];
  /** What to know about them. At most 1,000. */
  readonly warnings: readonly ImportWarning[];
  readonly rejected: readonly RejectedImport[];
  /** How long an MCP server allows its list to be kept, and for whom. */
  readonly cache?: { readonly ttlMs?: number; readonly scope?: "public" | "private" };
}

/** The facts about a tool from which its risk is decided. */
export interface RiskQuestion {
  /** The id that the tool will have. */
  readonly id: string;
  /** The name that the source knows it by. */
  readonly sourceName: string;
  /** What the source says about it. These are hints: a server may lie. */
  readonly annotations: ToolAnnotations;
  /** The risk that follows from the hints, and from what was found in its text. */
  readonly suggested: RiskLevel;
  /** What was found in its text and its name: `hidden-text`, `instruction`, `look-alike`. */
  readonly findings: readonly string[];
}

/**
 * One value for all tools of an import, a value by the name that the source knows a tool by, with
 * `"*"` for those that are not named, or a function that decides.
 */
export type PerTool<Value> =
  | Value
  | { readonly [name: string]: Value }
  | ((question: RiskQuestion) => Value);

/** Some of the tools, by the names that the source knows them by. */
export type ImportFilter = readonly string[] | ((name: string) => boolean);

/** Runs a call of an imported tool. */
export type ImportExecute = (
  /** The name that the source knows the tool by. */
  name: string,
  args: { readonly [key: string]: unknown },
  context: ToolContext,
) => ToolOutput<unknown>;

/** Bounds of an import, against documents that are made to exhaust memory or time. */
export interface ImportLimits {
  /**
   * How many entries of the document are looked at.
   *
   * @default {5_000}
   */
  readonly maxTools?: number;
  /**
   * How many JSON values the tools may have together. A part that an OpenAPI document shares counts
   * once for every operation that uses it.
   *
   * @default {2_000_000}
   */
  readonly maxValues?: number;
}

/** Options for `importTools`, for every source. */
export interface ImportOptions {
  /** The namespace of the tools. Names are unique within one document only, so give one. */
  readonly namespace?: string;
  /** Import only these tools. A name that no tool has is a warning. */
  readonly include?: ImportFilter;
  /** Do not import these tools. Wins over `include`. */
  readonly exclude?: ImportFilter;
  /**
   * The risk of the tools, or how to decide it. By default it follows the hints that the source
   * gives: `low` if the tool only reads, `high` if it may destroy, `medium` if nothing is known.
   * A tool in whose text or name something was found is at least `high`, unless a record or a
   * function says otherwise. A record leaves the tools that it does not name as they are.
   *
   * Hints are not verified: give the risk for a source that you do not trust.
   */
  readonly risk?: PerTool<RiskLevel>;
  /**
   * The roles that may use the tools; `undefined` is everyone. A tool that a record does not name
   * is rejected: a server may add tools at any time.
   */
  readonly roles?: PerTool<readonly string[] | undefined>;
  /** What a caller of the tools must hold. A tool that a record does not name is rejected. */
  readonly scopes?: PerTool<readonly string[]>;
  /** Tools of other sources, such as a registry's: a name that looks like theirs is a warning. */
  readonly beside?: Iterable<Tool>;
  /** Not in these options, but in `WithPins`: an import with pins answers a promise. */
  readonly pins?: undefined;
  /** Tags for all tools, besides those of the document. Only this option can give `read-only`. */
  readonly tags?: readonly string[];
  /** Runs the calls. Absent: the tools are definitions only. */
  readonly execute?: ImportExecute;
  readonly limits?: ImportLimits;
}

const checkNamespace = must('1 to 128 letters, digits, "_", "." or "-"', isToolName);
const checkCount = wholeFrom(1);
const checkNames = must(
  "a list of strings that are not empty",
  (value): value is readonly string[] => isListOf(value, isWord),
);
const checkFilter = must(
  "a list of names, or a function",
  (value): value is ImportFilter => typeof value === "function" || isListOf(value, isWord),
);

const ACTION = "import tools";

/**
 * Checks the options.
 *
 * @returns The limits.
 * @throws {TypeError | RangeError} If one is wrong.
 */
export function checkImportOptions(options: ImportOptions): Required<ImportLimits> {
  const { namespace, risk, tags, limits = {} } = options;
  const { maxTools = 5_000, maxValues = 2_000_000 } = limits;
  if (namespace !== undefined) checkNamespace(ACTION, namespace, "the namespace");
  checkPerTool(risk, isRiskLevel, checkRisk, "the risk");
  checkPerTool(options.roles, isList, checkNames, "the roles");
  checkPerTool(options.scopes, isList, checkNames, "the scopes");
  if (options.include !== undefined) checkFilter(ACTION, options.include, "include");
  if (options.exclude !== undefined) checkFilter(ACTION, options.exclude, "exclude");
  if (tags !== undefined) checkNames(ACTION, tags, "the tags");
  return {
    maxTools: checkCount(ACTION, maxTools, "maxTools"),
    maxValues: checkCount(ACTION, maxValues, "maxValues"),
  };
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

/** Checks a value for all tools, or each value of a record. Functions are checked when they answer. */
function checkPerTool<Value>(
  given: PerTool<Value> | undefined,
  isOne: (value: unknown) => boolean,
  check: Check,
  place: string,
): void {
  if (given === undefined || typeof given === "function") return;
  if (isOne(given) || !isObject(given)) check(ACTION, given, place);
  else {
    for (const [name, value] of Object.entries(given)) {
      if (value !== undefined) check(ACTION, value, `${place} of "${clip(name)}"`);
    }
  }
}

/** The value for one tool; `missing` if a record does not name it. */
function valueFor<Value>(
  given: PerTool<Value>,
  isOne: (value: unknown) => boolean,
  question: RiskQuestion,
  missing: Value,
): Value {
  if (typeof given === "function") {
    return atOnce((given as (asked: RiskQuestion) => Value)(question));
  }
  if (isOne(given) || !isObject(given)) return given as Value;
  const record = given as { readonly [name: string]: Value };
  const name = [question.sourceName, "*"].find((key) => Object.hasOwn(record, key));
  return name === undefined ? missing : record[name] as Value;
}

/** Whether the owner wants a tool of this name. */
export function isWanted({ include, exclude }: ImportOptions, name: string): boolean {
  // A function that answers nonsense lets nothing in.
  return (include === undefined || isIn(include, name) === true) &&
    (exclude === undefined || isIn(exclude, name) === false);
}

function isIn(filter: ImportFilter, name: string): unknown {
  return typeof filter === "function" ? atOnce(filter(name)) : filter.includes(name);
}

/** What the owner decides about a tool. */
export interface OwnersWord {
  readonly risk: RiskLevel;
  readonly roles: readonly string[] | undefined;
  readonly scopes: readonly string[] | undefined;
  /** The option whose record does not name the tool, which is rejected then. */
  readonly missing?: "roles" | "scopes";
}

const MISSING: readonly string[] = Object.freeze([]);

/**
 * The risk, the roles and the scopes of a tool.
 *
 * @throws {TypeError} If a function answers something else.
 */
export function ownersWord(options: ImportOptions, question: RiskQuestion): OwnersWord {
  const { risk, roles, scopes } = options;
  const { suggested, findings } = question;
  const level = risk === undefined ? suggested : valueFor(risk, isRiskLevel, question, suggested);
  checkRisk(ACTION, level, "the risk");
  const read = (given: PerTool<readonly string[] | undefined> | undefined, place: string) => {
    const names = given && valueFor(given, isList, question, MISSING);
    return names === undefined ? undefined : checkNames(ACTION, names, place);
  };
  const heldRoles = read(roles, "the roles");
  const heldScopes = read(scopes, "the scopes");
  return {
    // One level for all tools was not chosen for this one.
    risk: isRiskLevel(risk) && findings.length > 0 && compareRisk(suggested, level) > 0
      ? suggested
      : level,
    roles: heldRoles,
    scopes: heldScopes,
    ...(heldRoles === MISSING
      ? { missing: "roles" }
      : heldScopes === MISSING
      ? { missing: "scopes" }
      : {}),
  };
}
