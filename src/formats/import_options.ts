/**
 * The options of an import, their checks, and what an import gives.
 *
 * @module
 */

import {
  atOnce,
  checkRisk,
  isListOf,
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
  /** The risk that follows from the hints. */
  readonly suggested: RiskLevel;
}

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
  /**
   * The risk of the tools, or how to decide it. By default it follows the hints that the source
   * gives: `low` if the tool only reads, `high` if it may destroy, `medium` if nothing is known.
   *
   * Hints are not verified: give the risk for a source that you do not trust.
   */
  readonly risk?: RiskLevel | ((question: RiskQuestion) => RiskLevel);
  /** Tags for all tools, besides those of the document. Only this option can give `read-only`. */
  readonly tags?: readonly string[];
  /** Runs the calls. Absent: the tools are definitions only. */
  readonly execute?: ImportExecute;
  readonly limits?: ImportLimits;
}

const checkNamespace = must('1 to 128 letters, digits, "_", "." or "-"', isToolName);
const checkTags = must(
  "a list of strings that are not empty",
  (value): value is readonly string[] => isListOf(value, isWord),
);
const checkCount = wholeFrom(1);

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
  if (risk !== undefined && typeof risk !== "function") checkRisk(ACTION, risk, "the risk");
  if (tags !== undefined) checkTags(ACTION, tags, "the tags");
  return {
    maxTools: checkCount(ACTION, maxTools, "maxTools"),
    maxValues: checkCount(ACTION, maxValues, "maxValues"),
  };
}

/** The risk of a tool. */
export function riskOf({ risk }: ImportOptions, question: RiskQuestion): RiskLevel {
  if (risk === undefined) return question.suggested;
  return typeof risk === "function" ? checkRisk(ACTION, atOnce(risk(question)), "the risk") : risk;
}
