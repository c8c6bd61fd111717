/** The options of an export with their checks, and the losses and warnings of an export. */

import * as check from "../tool/mod.ts";
import { defined, isObject, type Tool } from "../tool/mod.ts";
import type { ExportNames } from "./export_names.ts";

/** The handling of a loss. See {@linkcode ExportOptions.onLoss}. */
export type OnLoss = "warn" | "describe" | "reject-tool" | "throw";

/** Options for `exportTools`. */
export interface ExportOptions extends RequestSettings {
  /**
   * The handling of parts of a tool that a target cannot express. All losses are reported.
   *
   * - `describe`: add lost constraints to the description of their schema.
   * - `warn`: omit lost constraints.
   * - `reject-tool`: reject a tool whose `parameters` have a loss that widens or has grade `lost`.
   *   In a strict mode, send the tool without `strict` if that avoids the loss (`strictFallback`).
   * - `throw`: throw a `TypeError` for the first tool that `reject-tool` would reject.
   *
   * @default {"describe"}
   */
  readonly onLoss?: OnLoss;
  /**
   * In a strict mode, send a tool that the mode cannot express (an open map, an exceeded limit)
   * without `strict`, and report that. If `false`, such a tool is rejected.
   *
   * @default {true}
   */
  readonly strictFallback?: boolean;
  /** Use the target's namespaces (OpenAI Responses) instead of prefixes. @default {true} */
  readonly namespaces?: boolean;
  /** The path template of a call in OpenAPI. @default {"/tools/{id}/execute"} */
  readonly path?: string;
}

const FIELDS = {
  onLoss: check.createCheck(
    '"describe", "warn", "reject-tool" or "throw"',
    (value): value is OnLoss =>
      value === "describe" || value === "warn" || value === "reject-tool" || value === "throw",
  ),
  strictFallback: check.checkFlag,
  namespaces: check.checkFlag,
  path: check.createCheck(
    'text that begins with "/" and contains "{id}"',
    (value): value is string =>
      typeof value === "string" && value.startsWith("/") && value.includes("{id}"),
  ),
  toolChoice: check.createCheck(
    '"auto", "none", "required" or { tool: id }',
    (value): value is ToolChoice =>
      value === "auto" || value === "none" || value === "required" ||
      isObject(value) && typeof value["tool"] === "string" && Object.keys(value).length === 1,
  ),
  parallel: check.checkFlag,
} satisfies { readonly [Field in keyof Required<ExportOptions>]: check.Check };

/** Checks options for an export. @throws {TypeError} If one is unknown or invalid. */
export function checkExportOptions(options: ExportOptions): void {
  check.readFields("export the tools", options, FIELDS, (field) => field);
}

/** The part of a tool with a loss: its `parameters`, its `returns`, or another field. */
export type LossSide = "input" | "output" | "tool";

/**
 * The grade of a loss.
 *
 * - `lost`: the part is not sent, or the target discards it.
 * - `weakened`: a looser or tighter part is sent instead, or the target ignores the part.
 * - `moved`: the part is in a description.
 * - `ambiguous`: two different values have the same form on the wire.
 */
export type LossGrade = "lost" | "weakened" | "moved" | "ambiguous";

/** The treatment of a part that a target cannot express. */
export type LossAction =
  /** Not sent. */
  | "dropped"
  /** Moved from the schema to the description. */
  | "described"
  /** Replaced by another part. */
  | "replaced"
  /** Sent unchanged, although the target ignores it. */
  | "sent";

/** A part of a tool that a target cannot express. */
export interface Loss {
  /** The id of the tool. */
  readonly tool: string;
  readonly side: LossSide;
  /** A JSON Pointer into the tool's own `parameters`, its `returns`, or the tool itself. */
  readonly path: string;
  /** The schema keyword or the tool's field. */
  readonly keyword: string;
  readonly action: LossAction;
  readonly grade: LossGrade;
  /** True if the exported schema accepts values that the tool's own schema rejects. */
  readonly widens: boolean;
  /** True if the exported schema rejects values that the tool's own schema accepts. */
  readonly narrows: boolean;
  readonly message: string;
}

/** A warning that is not a loss: about an undocumented rule, or about the whole request. */
export interface ExportWarning {
  /** The first tool that the warning concerns. Absent if the warning concerns all tools. */
  readonly tool?: string;
  /** The subject of the warning: a field, a keyword, a limit (`maxTools`), or an option. */
  readonly rule: string;
  readonly message: string;
}

/** A tool that could not be exported. Other tools are exported. */
export interface RejectedTool extends ExportWarning {
  /** The id of the tool. */
  readonly tool: string;
}

/** The result of an export. The losses, rejected tools and warnings are frozen. */
export interface ExportResult<Tools = unknown, Id extends string = string, Request = object> {
  readonly target: Id;
  /** The tools in the target's shape. Each export has a new copy, because clients modify tools. */
  readonly tools: Tools;
  /**
   * The fields of a request for the options `toolChoice` and `parallel`. Spread them into the
   * object with the tools: the request, for Bedrock `toolConfig`, for Google's client `config`.
   */
  readonly request: Request;
  /** The parts that the target cannot express, in the order of the tools and their schemas. */
  readonly losses: readonly Loss[];
  readonly rejected: readonly RejectedTool[];
  readonly names: ExportNames;
  readonly warnings: readonly ExportWarning[];
}

/** Collects the warnings of an export: one per rule, with the first tool and a count of tools. */
export class ExportWarnings {
  readonly #title: string;
  readonly #found = new Map<
    string,
    { readonly tool: string | undefined; readonly text: string; count: number }
  >();

  constructor(title: string) {
    this.#title = title;
  }

  add(rule: string, tool: Tool | undefined, text: string): void {
    const there = this.#found.get(rule);
    if (there === undefined) {
      this.#found.set(rule, { tool: tool?.id, text, count: 1 });
    } else there.count++;
  }

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

/** The tools that the model may or must call: any, none, at least one, or the tool with an id. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** The settings of a request. */
export interface RequestSettings {
  /**
   * The tools that the model may or must call. Use `required` or an id for single requests only:
   * in a loop, the model would never return a text.
   *
   * @default {"auto"}
   */
  readonly toolChoice?: ToolChoice;
  /** Allows or forbids several calls in one response. By default, the provider decides. */
  readonly parallel?: boolean;
}

/** The settings as a target receives them, in which the tool has its name on the wire. */
export interface WireSettings {
  readonly toolChoice?: Exclude<ToolChoice, object> | {
    readonly name: string;
    readonly namespace?: string;
  };
  readonly parallel?: boolean;
}

/** Reports that a target has no field for a setting. */
export type LoseSetting = (rule: keyof RequestSettings, message: string) => void;

/** Writes the settings of a request. Without tools, providers reject a choice of tools. */
export function writeSettings(
  { toolChoice, parallel }: RequestSettings,
  target: { readonly title: string; choose?(settings: WireSettings, lose: LoseSetting): object },
  names: ExportNames,
  sendsTools: boolean,
): { readonly fields: object; readonly warnings: readonly ExportWarning[] } {
  const warnings: ExportWarning[] = [];
  if (toolChoice === undefined && parallel === undefined) return { fields: {}, warnings };
  const lose: LoseSetting = (rule, message) => {
    warnings.push(Object.freeze({ rule, message: `${target.title}: ${message}` }));
  };
  const settings = defined({ toolChoice: toolChoice && onWire(toolChoice, names), parallel });
  if (!sendsTools) {
    if (toolChoice === "required") lose("toolChoice", "there is no tool that the model could call");
    return { fields: {}, warnings };
  }
  return { fields: (target.choose ?? chooseNothing)(settings, lose), warnings };
}

function onWire(choice: ToolChoice, names: ExportNames): NonNullable<WireSettings["toolChoice"]> {
  if (typeof choice === "string") return choice;
  const encoding = names.encodingOf(choice.tool);
  if (encoding === undefined) {
    throw new TypeError(
      `Cannot export the tools: toolChoice names ${JSON.stringify(choice.tool)}, ` +
        "which is not sent; a provider's own tool cannot be chosen",
    );
  }
  const { name, namespace } = encoding;
  return { name, ...defined({ namespace }) };
}

/** For targets without fields for settings. A default behaviour, such as `auto`, is not a loss. */
function chooseNothing({ toolChoice, parallel }: WireSettings, lose: LoseSetting): object {
  if (toolChoice !== undefined && toolChoice !== "auto") {
    lose("toolChoice", "a request has no field for the choice of a tool");
  }
  loseParallel(parallel, lose);
  return {};
}

/** Reports the loss of `parallel: false`, for targets that cannot limit a response to one call. */
export function loseParallel(parallel: boolean | undefined, lose: LoseSetting): void {
  if (parallel === false) {
    lose("parallel", "a request has no field that limits the model to one call");
  }
}
