/**
 * The options of an export, their checks, and what an export reports: losses, rejected tools, and
 * warnings.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import { checkToolChoice, type RequestSettings } from "./request_settings.ts";
import { type Check, checkFlag, must, readFields, type Tool } from "../tool/mod.ts";

/** What to do about a loss. See {@linkcode ExportOptions.onLoss}. */
export type OnLoss = "warn" | "describe" | "reject-tool" | "throw";

/** Options for `exportTools`. */
export interface ExportOptions extends RequestSettings {
  /**
   * What to do about what a target cannot express. Every choice reports all losses.
   *
   * - `describe`: say lost constraints in the description of the schema that had them.
   * - `warn`: leave them out.
   * - `reject-tool`: reject a tool whose input is *misrepresented*: a loss there widens what is
   *   accepted, or is graded `lost`. Fields of the tool and its result schema do not count. What a
   *   strict mode misrepresents is sent without it, where `strictFallback` allows that.
   * - `throw`: as `reject-tool`, but throw a `TypeError` that names the first such tool.
   *
   * @default {"describe"}
   */
  readonly onLoss?: OnLoss;
  /**
   * In a strict mode, send a tool that the mode cannot hold (an open map, no room in the budget)
   * without `strict`, and report that. Otherwise it is rejected.
   *
   * @default {true}
   */
  readonly strictFallback?: boolean;
  /**
   * Use the target's own namespaces where it has them (OpenAI Responses). Otherwise, and
   * everywhere else, the namespace becomes part of the name.
   *
   * @default {true}
   */
  readonly namespaces?: boolean;
  /**
   * Add the examples to the description where the target has no field for them.
   *
   * @default {false}
   */
  readonly describeExamples?: boolean;
  /**
   * Add the result schema to the description where the target has no field for it.
   *
   * @default {false}
   */
  readonly describeReturns?: boolean;
  /**
   * Where a call of a tool is sent, for OpenAPI; `{id}` stands for the id.
   *
   * @default {"/tools/{id}/execute"}
   */
  readonly path?: string;
  /**
   * Checks the examples against the schema that is sent: those that do not fit are left out, since
   * a provider refuses the whole request for one. Absent: all but `format` is checked.
   */
  readonly engine?: SchemaEngine;
}

const FIELDS = {
  onLoss: must(
    '"describe", "warn", "reject-tool" or "throw"',
    (value): value is OnLoss =>
      value === "describe" || value === "warn" || value === "reject-tool" || value === "throw",
  ),
  strictFallback: checkFlag,
  namespaces: checkFlag,
  describeExamples: checkFlag,
  describeReturns: checkFlag,
  path: must(
    'text that begins with "/" and contains "{id}"',
    (value): value is string =>
      typeof value === "string" && value.startsWith("/") && value.includes("{id}"),
  ),
  engine: (_action, value) => value,
  toolChoice: checkToolChoice,
  parallel: checkFlag,
} satisfies { readonly [Field in keyof Required<ExportOptions>]: Check };

/**
 * Checks the options.
 *
 * @throws {TypeError} If one is unknown or wrong.
 */
export function checkExportOptions(options: ExportOptions): void {
  readFields("export the tools", options, FIELDS, (field) => field);
}

/** Which part of a tool a loss is in: its `parameters`, its `returns`, or another field. */
export type LossSide = "input" | "output" | "tool";

/**
 * How much is gone.
 *
 * - `lost`: it is not sent, or the target throws it away.
 * - `weakened`: something looser (or tighter) is sent in its place, or the target ignores it.
 * - `moved`: it is said in a description.
 * - `ambiguous`: it cannot be decoded with certainty: two different values look alike on the wire.
 */
export type LossGrade = "lost" | "weakened" | "moved" | "ambiguous";

/** What was done about something that a target cannot express. */
export type LossAction =
  /** Not sent. */
  | "dropped"
  /** Left out of the schema, and said in the description. */
  | "described"
  /** Something else is sent in its place. */
  | "replaced"
  /** Sent as it is, though the target ignores it. */
  | "sent";

/** One thing that a target cannot express. */
export interface Loss {
  /** The id of the tool. */
  readonly tool: string;
  readonly side: LossSide;
  /** Where, as a JSON Pointer into the tool's own `parameters`, `returns`, or the tool itself. */
  readonly path: string;
  /** The schema keyword or the tool's field. */
  readonly keyword: string;
  readonly action: LossAction;
  readonly grade: LossGrade;
  /** The exported schema accepts values that the tool's own schema refuses. */
  readonly widens: boolean;
  /** The exported schema refuses values that the tool's own schema accepts. */
  readonly narrows: boolean;
  /** The whole sentence. */
  readonly message: string;
}

/** A tool that could not be exported. The others were. */
export interface RejectedTool {
  /** The id of the tool. */
  readonly tool: string;
  /** The rule that it broke: a keyword, a limit (`maxTools`), or `onLoss`. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** A note that is not a loss: an uncertain fact, or a rule about the whole request. */
export interface ExportWarning {
  /** The first tool it concerns; absent if it concerns the whole request. */
  readonly tool?: string;
  /** The keyword or the limit that it is about. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** The warnings of one export: each rule once, with the first tool and the number of tools. */
export class ExportWarnings {
  readonly #title: string;
  readonly #found = new Map<
    string,
    { readonly tool: string | undefined; readonly text: string; count: number }
  >();

  /** @param title The target's title, with which each sentence begins. */
  constructor(title: string) {
    this.#title = title;
  }

  /** Warns of a rule. The first `text` for a rule is kept. */
  add(rule: string, tool: Tool | undefined, text: string): void {
    const there = this.#found.get(rule);
    if (there === undefined) {
      this.#found.set(rule, { tool: tool?.id, text, count: 1 });
    } else there.count++;
  }

  /** The warnings, in the order in which their rules came up. */
  list(): readonly ExportWarning[] {
    return Object.freeze(
      [...this.#found].map(([rule, { tool, text, count }]): ExportWarning => {
        const who = tool === undefined
          ? ""
          : ` ("${tool}"${count === 1 ? "" : ` and ${count - 1} more`})`;
        return Object.freeze({
          ...(tool === undefined ? {} : { tool }),
          rule,
          message: `${this.#title}: ${text}${who}`,
        });
      }),
    );
  }
}
