/** The options of an import with their checks, the result of an import, and the port for pins. */

import {
  assertSync,
  type Check,
  checkRisk,
  clip,
  createCheck,
  isListOf,
  isObject,
  isRiskLevel,
  isToolName,
  isWord,
  type RiskLevel,
  riskRank,
  type Tool,
  type ToolAnnotations,
  type ToolContext,
  type ToolCredentials,
  type ToolOutput,
  wholeFrom,
} from "../tool/mod.ts";
import type { ExportWarning } from "./export_options.ts";

/** A warning about an imported tool, or about the document. */
export interface ImportWarning extends ExportWarning {
  /** A JSON Pointer into the document. */
  readonly path: string;
}

/** An entry that could not be imported. Other entries are imported. */
export interface RejectedImport extends Omit<ImportWarning, "tool"> {
  /** The tool's name in the document, if the entry has a name. */
  readonly name: string | undefined;
}

/** The result of an import. */
export interface ImportResult<Source extends string = string> {
  /** The source of the document; `undefined` if `auto` has not detected a source. */
  readonly source: Source | undefined;
  /** The imported tools, in the order of the document. */
  readonly tools: readonly Tool[];
  /** At most 1,000 warnings, and a last entry if there were more. */
  readonly warnings: readonly ImportWarning[];
  readonly rejected: readonly RejectedImport[];
}

/** The facts about a tool by which a function decides the tool's risk, roles or scopes. */
export interface RiskQuestion {
  readonly id: string;
  /** The name of the tool in the source. */
  readonly sourceName: string;
  /** The hints of the source, which are not verified. */
  readonly annotations: ToolAnnotations;
  /** The risk that follows from the hints and the findings. */
  readonly suggested: RiskLevel;
  /** The findings in the tool's texts and name: `hidden-text`, `instruction`, `look-alike`. */
  readonly findings: readonly string[];
}

/**
 * One value for all tools of an import, a record of values by the tools' names in the source (with
 * `"*"` for all other tools), or a function that returns the value for a tool.
 */
export type PerTool<Value> =
  | Value
  | { readonly [name: string]: Value }
  | ((question: RiskQuestion) => Value);

/** A list of names in the source, or a function that returns true for the selected names. */
export type ImportFilter = readonly string[] | ((name: string) => boolean);

/** Bounds of an import, against documents that are made to exhaust memory or time. */
export interface ImportLimits {
  /** The maximum number of entries that are read. @default {5_000} */
  readonly maxTools?: number;
  /** The maximum number of JSON values. A shared value counts at each use. @default {2_000_000} */
  readonly maxValues?: number;
}

/** Options of every import. */
export interface ImportOptions {
  /** The namespace of the tools. Set a namespace, because names are unique in one document only. */
  readonly namespace?: string;
  /** Import only these tools. A name that no tool has causes a warning. */
  readonly include?: ImportFilter;
  /** Do not import these tools, even if `include` has them. */
  readonly exclude?: ImportFilter;
  /**
   * The risk of the tools. By default, the risk follows from the source's hints, which are not
   * verified: `low` if the tool only reads, `high` if it may be destructive, otherwise `medium`.
   * The risk of a tool with a finding is at least `high`, unless a record or a function sets the
   * risk. A record does not change the risk of tools that the record does not name.
   */
  readonly risk?: PerTool<RiskLevel>;
  /** The allowed roles; `undefined` allows everyone. A tool missing in a record is rejected. */
  readonly roles?: PerTool<readonly string[] | undefined>;
  /** The scopes that a caller must have. A tool missing in a record is rejected. */
  readonly scopes?: PerTool<readonly string[]>;
  /** The callers' credentials that the tools use, such as `{ github: { scopes: ["repo"] } }`. */
  readonly credentials?: ToolCredentials;
  /** Tools of other sources. A name that looks like the name of such a tool is a finding. */
  readonly beside?: Iterable<Tool>;
  /** Pins are an option of `WithPins`, because an import with pins returns a promise. */
  readonly pins?: undefined;
  /** Tags for all tools, added to the tags of the document. Only this option can set `read-only`. */
  readonly tags?: readonly string[];
  /** Runs the calls by the tools' names in the source. By default, the tools are definitions only. */
  readonly execute?: (
    name: string,
    args: { readonly [key: string]: unknown },
    context: ToolContext,
  ) => ToolOutput<unknown>;
  readonly limits?: ImportLimits;
}

/** Options for `importTools`. */
export interface ImportToolsOptions extends ImportOptions {
  /**
   * The transport of an MCP server. MCP forbids the use of a tool with an invalid `x-mcp-header`
   * over HTTP, so such a tool is rejected. Over stdio, the tool causes a warning.
   *
   * @default {"http"}
   */
  readonly transport?: "http" | "stdio";
  /**
   * In OpenAI's tools with `strict: true`, import required, nullable properties as optional ones.
   * In strict mode, optional properties have that form, but so have properties that accept `null`.
   * In the arguments that `execute` receives, the missing properties are `null` again.
   *
   * @default {false}
   */
  readonly unstrict?: boolean;
}

const checkNamespace = createCheck('1 to 128 letters, digits, "_", "." or "-"', isToolName);
const checkCount = wholeFrom(1);
const checkNames = createCheck(
  "a list of strings that are not empty",
  (value) => isListOf(value, isWord),
);
const checkFilter = createCheck(
  "a list of names, or a function",
  (value): value is ImportFilter => typeof value === "function" || isListOf(value, isWord),
);

const ACTION = "import tools";

/** Checks the options, and returns the limits with their defaults. */
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

/** Checks a value for all tools, or the values of a record. `decide` checks functions' results. */
function checkPerTool<Value>(
  option: PerTool<Value> | undefined,
  isOne: (value: unknown) => boolean,
  check: Check,
  place: string,
): void {
  if (option === undefined || typeof option === "function") return;
  if (isOne(option) || !isObject(option)) check(ACTION, option, place);
  else {
    for (const [name, value] of Object.entries(option)) {
      if (value !== undefined) check(ACTION, value, `${place} of "${clip(name)}"`);
    }
  }
}

/** Returns the value for one tool, or `missing` if a record does not name the tool. */
function valueFor<Value>(
  option: PerTool<Value>,
  isOne: (value: unknown) => boolean,
  question: RiskQuestion,
  missing: Value,
): Value {
  if (typeof option === "function") {
    return assertSync((option as (question: RiskQuestion) => Value)(question));
  }
  if (isOne(option) || !isObject(option)) return option as Value;
  const record = option as { readonly [name: string]: Value };
  const name = [question.sourceName, "*"].find((key) => Object.hasOwn(record, key));
  return name === undefined ? missing : record[name] as Value;
}

/** Returns true if the options select a tool with this name. */
export function isWanted({ include, exclude }: ImportOptions, name: string): boolean {
  // A function whose result is not a boolean selects no tool.
  return (include === undefined || isIn(include, name) === true) &&
    (exclude === undefined || isIn(exclude, name) === false);
}

function isIn(filter: ImportFilter, name: string): unknown {
  return typeof filter === "function" ? assertSync(filter(name)) : filter.includes(name);
}

/** The decisions of the host about a tool. */
export interface HostDecisions {
  readonly risk: RiskLevel;
  readonly roles: readonly string[] | undefined;
  readonly scopes: readonly string[] | undefined;
  /** The option whose record does not name the tool. The tool is then rejected. */
  readonly missing: "roles" | "scopes" | undefined;
}

const MISSING: readonly string[] = Object.freeze([]);

/** Decides the risk, the roles and the scopes of a tool. */
export function decide(options: ImportOptions, question: RiskQuestion): HostDecisions {
  const { risk, roles, scopes } = options;
  const { suggested, findings } = question;
  const level = risk === undefined ? suggested : valueFor(risk, isRiskLevel, question, suggested);
  checkRisk(ACTION, level, "the risk");
  const read = (option: PerTool<readonly string[] | undefined> | undefined, place: string) => {
    const names = option && valueFor(option, isList, question, MISSING);
    return names === undefined ? undefined : checkNames(ACTION, names, place);
  };
  const names = { roles: read(roles, "the roles"), scopes: read(scopes, "the scopes") };
  return {
    // A risk for all tools is not a decision about this tool, so a higher suggestion applies.
    risk: isRiskLevel(risk) && findings.length > 0 && riskRank(suggested) > riskRank(level)
      ? suggested
      : level,
    ...names,
    missing: (["roles", "scopes"] as const).find((option) => names[option] === MISSING),
  };
}

/** Options of an import that holds back tools which differ from their approved definitions. */
export type WithPins<Options extends ImportOptions> =
  & Omit<Options, "pins">
  & {
    /** The approved definitions, from `toolPins` of `@plue/tools/pins`. */
    readonly pins: ImportPins;
  };

/**
 * The severity of a change, in increasing order:
 * - `wording`: only descriptive texts differ;
 * - `narrowed`: fewer arguments or results are valid, or the tool no longer exists;
 * - `widened`: more arguments or results may be valid, the tool is new, or the effect is unknown;
 * - `risk_raised`: hints are riskier, calls have another destination, or a text or name is suspect.
 */
export type PinGrade = "wording" | "narrowed" | "widened" | "risk_raised";

/** One difference between the approved and the offered definition. */
export interface PinChange {
  /** A JSON Pointer into the definitions. */
  readonly path: string;
  readonly grade: PinGrade;
}

/** A tool that is held back: not listed, found, exported or called until it is approved. */
export interface HeldTool {
  readonly id: string;
  /** The change since the approval; `unverified` if the pins cannot be read or stored. */
  readonly kind: "new" | "changed" | "renamed" | "vanished" | "unverified";
  /** The severity of the most severe change. */
  readonly grade: PinGrade;
  /** The differences of a changed tool. At most 100. */
  readonly changes: readonly PinChange[];
  /** The former id of a renamed tool. */
  readonly formerId?: string;
  /** The approved definition, if there is one. */
  readonly before?: Readonly<Record<string, unknown>>;
  /** The offered definition, which is not trusted; absent if the tool has vanished. */
  readonly after?: Readonly<Record<string, unknown>>;
  /** The digest of the offered definition; `""` if the tool has vanished. */
  readonly digest: string;
  /** The reason as a sentence. Of the source's texts, it has only ids and JSON Pointers. */
  readonly reason: string;
  /** A placeholder to register, for `explain` to return `reason`. Its name is from the source. */
  readonly tool: Tool;
}

/** The result of an import with pins. */
export interface PinnedImport<Source extends string = string> extends ImportResult<Source> {
  /** The tools that match their approved definitions. */
  readonly tools: readonly Tool[];
  readonly held: readonly HeldTool[];
  /**
   * Approves held tools with their definitions in this import, and stores the approval.
   *
   * @param tools Ids, or entries of `held`. An entry is rejected if its tool has changed again.
   * @returns The import with these tools in `tools`.
   * @throws {TypeError} If a tool is not held back, or has changed again.
   * @throws {Error} If the pins cannot be read or stored.
   */
  approve(...tools: readonly (string | HeldTool)[]): Promise<PinnedImport<Source>>;
}

/** Compares imports with the approved definitions. */
export interface ImportPins {
  /** Holds back unapproved tools. The promise never rejects. `key` is the import's namespace. */
  check<Source extends string>(
    imported: ImportResult<Source>,
    key: string,
  ): Promise<PinnedImport<Source>>;
}
