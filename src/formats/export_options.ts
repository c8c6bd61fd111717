/**
 * The options of an export with their checks, the settings of a request, and the losses, rejected
 * tools and warnings that an export reports.
 */

import {
  type Check,
  checkFlag,
  createCheck,
  defined,
  isObject,
  readFields,
  type Tool,
} from "../tool/mod.ts";
import type { ExportNames } from "./export_names.ts";

/** The handling of a loss. See {@linkcode ExportOptions.onLoss}. */
export type OnLoss = "warn" | "describe" | "reject-tool" | "throw";

/** Options for `exportTools`. */
export interface ExportOptions extends RequestSettings {
  /**
   * The handling of parts that a target cannot express. Every choice reports all losses.
   *
   * - `describe`: say lost constraints in the description of the schema that had them.
   * - `warn`: leave them out.
   * - `reject-tool`: reject a tool whose input is *misrepresented*: a loss there widens what is
   *   accepted, or is graded `lost`. Fields of the tool and its result schema do not count. A
   *   tool that a strict mode misrepresents is sent without it, if `strictFallback` allows that.
   * - `throw`: as `reject-tool`, but throw a `TypeError` that names the first such tool.
   *
   * @default {"describe"}
   */
  readonly onLoss?: OnLoss;
  /**
   * In a strict mode, send a tool that the mode cannot hold (an open map, a full budget)
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
   * The path of the operation that calls a tool, for OpenAPI, with `{id}` for the id.
   *
   * @default {"/tools/{id}/execute"}
   */
  readonly path?: string;
}

const checkToolChoice: Check<ToolChoice> = createCheck(
  '"auto", "none", "required" or { tool: id }',
  (value): value is ToolChoice =>
    value === "auto" || value === "none" || value === "required" ||
    isObject(value) && typeof value["tool"] === "string" && Object.keys(value).length === 1,
);

const FIELDS = {
  onLoss: createCheck(
    '"describe", "warn", "reject-tool" or "throw"',
    (value): value is OnLoss =>
      value === "describe" || value === "warn" || value === "reject-tool" || value === "throw",
  ),
  strictFallback: checkFlag,
  namespaces: checkFlag,
  path: createCheck(
    'text that begins with "/" and contains "{id}"',
    (value): value is string =>
      typeof value === "string" && value.startsWith("/") && value.includes("{id}"),
  ),
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
 * The grade of a loss.
 *
 * - `lost`: it is not sent, or the target throws it away.
 * - `weakened`: something looser (or tighter) is sent instead, or the target ignores it.
 * - `moved`: it is said in a description.
 * - `ambiguous`: it cannot be decoded with certainty: two different values have one form on the wire.
 */
export type LossGrade = "lost" | "weakened" | "moved" | "ambiguous";

/** The treatment of a part that a target cannot express. */
export type LossAction =
  /** Not sent. */
  | "dropped"
  /** Left out of the schema, and said in the description. */
  | "described"
  /** Something else is sent instead. */
  | "replaced"
  /** Sent unchanged, although the target ignores it. */
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
  /** The exported schema accepts values that the tool's own schema rejects. */
  readonly widens: boolean;
  /** The exported schema rejects values that the tool's own schema accepts. */
  readonly narrows: boolean;
  /** The whole sentence. */
  readonly message: string;
}

/** A note that is not a loss: an uncertain fact, or a rule about the whole request. */
export interface ExportWarning {
  /** The first tool that it concerns; absent if it concerns all of them. */
  readonly tool?: string;
  /** Its subject in one word: a field, a keyword, a limit (`maxTools`), or an option. */
  readonly rule: string;
  /** The whole sentence. */
  readonly message: string;
}

/** A tool that could not be exported. The others were. */
export interface RejectedTool extends ExportWarning {
  /** The id of the tool. */
  readonly tool: string;
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

  /** Warns of a rule. Only the first `text` of a rule is stored. */
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

/** The tools that the model may or must call: any, none, at least one, or one by its id. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** The settings of a request. */
export interface RequestSettings {
  /**
   * The tools that the model may or must call. `required` and the id of a tool are for one request: in
   * a loop, the model would never return a text.
   *
   * @default {"auto"}
   */
  readonly toolChoice?: ToolChoice;
  /** Allows or forbids several calls in one response. By default, the provider decides. */
  readonly parallel?: boolean;
}

/** The settings as a target gets them: a tool by its name on the wire. */
export interface WireSettings {
  readonly toolChoice?: Exclude<ToolChoice, object> | {
    readonly name: string;
    readonly namespace?: string;
  };
  readonly parallel?: boolean;
}

/** Says that a target has no field for a setting. */
export type LoseSetting = (rule: keyof RequestSettings, message: string) => void;

/**
 * Writes the settings of a request in the target's fields. A request without tools has no settings,
 * because providers reject a choice without tools.
 *
 * @throws {TypeError} If the chosen tool is not sent.
 */
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

function onWire(
  choice: ToolChoice,
  names: ExportNames,
): NonNullable<WireSettings["toolChoice"]> {
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

/** Writes no settings, for targets without such fields. Their default behaviour is not a loss. */
function chooseNothing({ toolChoice, parallel }: WireSettings, lose: LoseSetting): object {
  if (toolChoice !== undefined && toolChoice !== "auto") {
    lose("toolChoice", "a request has no field for the choice of a tool");
  }
  loseParallel(parallel, lose);
  return {};
}

/** For targets that cannot be held to one call at a time. */
export function loseParallel(parallel: boolean | undefined, lose: LoseSetting): void {
  if (parallel === false) {
    lose("parallel", "a request has no field that limits the model to one call");
  }
}
