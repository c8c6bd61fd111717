/**
 * What a request says besides its tools: whether the model must call one, and whether it may call
 * several at once.
 *
 * @module
 */

import { type Check, isObject, must } from "../tool/mod.ts";
import type { ExportNames } from "./export_names.ts";

/** Whether the model calls a tool: as it likes, none, at least one, or the one with this id. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** The settings of a request. */
export interface RequestSettings {
  /**
   * Whether the model calls a tool. `required`, and the id of a tool, are for one request: in a loop
   * the model would never answer.
   *
   * @default {"auto"}
   */
  readonly toolChoice?: ToolChoice;
  /** Whether the model may call several tools at once. Absent: what the provider does by itself. */
  readonly parallel?: boolean;
}

export const checkToolChoice: Check<ToolChoice> = must(
  '"auto", "none", "required" or { tool: id }',
  (value): value is ToolChoice =>
    value === "auto" || value === "none" || value === "required" ||
    isObject(value) && typeof value["tool"] === "string" && Object.keys(value).length === 1,
);

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

/** A target that has fields for the settings. */
export interface Chooses<Choose> {
  readonly choose: Choose;
}

/** How a target writes the settings of a request. */
export type WriteSettings = (settings: WireSettings, lose: LoseSetting) => object;

/** The fields of a request, and what the target has no field for. */
export interface WrittenSettings {
  readonly fields: object;
  readonly warnings: readonly { readonly rule: string; readonly message: string }[];
}

const NOTHING: WrittenSettings = Object.freeze({ fields: {}, warnings: Object.freeze([]) });

/**
 * Writes the settings of a request in the target's fields. Without tools there are none, because
 * providers refuse a choice among no tools.
 *
 * @throws {TypeError} If the chosen tool is not among those that are sent.
 */
export function writeSettings(
  { toolChoice, parallel }: RequestSettings,
  target: { readonly title: string; readonly choose?: WriteSettings | undefined },
  names: ExportNames,
  sendsTools: boolean,
): WrittenSettings {
  if (toolChoice === undefined && parallel === undefined) return NOTHING;
  const warnings: { readonly rule: string; readonly message: string }[] = [];
  const lose: LoseSetting = (rule, message) => {
    warnings.push(Object.freeze({ rule, message: `${target.title}: ${message}` }));
  };
  const settings = {
    ...(toolChoice === undefined ? {} : { toolChoice: onWire(toolChoice, names) }),
    ...(parallel === undefined ? {} : { parallel }),
  };
  if (!sendsTools) {
    if (toolChoice === "required") lose("toolChoice", "there is no tool that the model could call");
    return { fields: {}, warnings };
  }
  const choose = target.choose ?? chooseNothing;
  return { fields: choose(settings, lose), warnings };
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
        "which is not among those that are sent; a provider's own tool cannot be chosen",
    );
  }
  const { name, namespace } = encoding;
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

/** For targets without such fields: what they do by themselves is no loss. */
export function chooseNothing({ toolChoice, parallel }: WireSettings, lose: LoseSetting): object {
  if (toolChoice !== undefined && toolChoice !== "auto") {
    lose("toolChoice", "a request has no field for the choice of a tool");
  }
  loseParallel(parallel, lose);
  return {};
}

/** For targets that cannot be held to one call at a time. */
export function loseParallel(parallel: boolean | undefined, lose: LoseSetting): void {
  if (parallel === false) {
    lose("parallel", "a request has no field that keeps the model from calling several at once");
  }
}
