/**
 * The steps that read the arguments, have them repaired, and check them by their schema.
 *
 * @module
 */

import { compileOnce, issuesOf, type StandardOutcome, validateStandard } from "../schema/mod.ts";
import {
  type ArgumentRepair,
  atOnce,
  clip,
  isObject,
  type Issue,
  isWord,
  MAX_DEPTH,
  refuse,
  systemClock,
  type Tool,
  type ToolFailure,
} from "../tool/mod.ts";
import type { Call, StepAnswer } from "./call.ts";
import { CallView } from "./context.ts";
import {
  describeRefusal,
  frozenCopy,
  type JsonVerdict,
  readJson,
  utf8Length,
} from "./json_value.ts";

const THREE_DIGITS = /\d{3}/;
const LARGE_NUMBER = /e\+?\d{3}|\d{200}/i;

/**
 * Whether a number in a short text may be above the largest one, which `JSON.parse` reads as
 * `Infinity`: it has three digits of an exponent, or two hundred of its own.
 */
function mayBeInfinite(text: string): boolean {
  // Node takes a third of the time for the first, and most texts have no such digits.
  return THREE_DIGITS.test(text) && LARGE_NUMBER.test(text);
}

export function readArguments(call: Call): StepAnswer | Promise<undefined> {
  return read(call, call.request.arguments);
}

/** Reads arguments: a JSON string, or a value that is JSON. Nothing stands for `{}`. */
function read(call: Call, given: unknown): StepAnswer | Promise<undefined> {
  const limit = call.settings.maxArgumentBytes;
  // A copy: the tool gets what was validated, also if the caller changes its object later.
  if (typeof given !== "string") return keepArguments(call, readJson(given ?? {}, limit, true));
  // A UTF-16 unit takes one to three bytes, so most texts need not be measured.
  if (given.length > limit || (given.length * 3 > limit && utf8Length(given) > limit)) {
    return tooLarge(call);
  }
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch {
    if (given.trim() !== "") return keepText(call, given);
  }
  // A level takes two characters, so a short text is never too deep.
  if (given.length > 2 * MAX_DEPTH || mayBeInfinite(given)) {
    return keepArguments(call, readJson(value, Infinity), given.length);
  }
  call.args = value ?? {};
  call.argumentLength = given.length;
  return undefined;
}

/** From so many bytes on, others have their turn between reading arguments and checking them. */
const LARGE = 65_536;

function keepArguments(
  call: Call,
  verdict: JsonVerdict,
  size?: number,
): StepAnswer | Promise<undefined> {
  if (verdict.kind === "large") return tooLarge(call);
  if (verdict.kind === "refused") return notJson(call, `: ${describeRefusal(verdict)}`);
  call.args = verdict.value;
  call.argumentLength = size ?? verdict.bytes;
  if (call.argumentLength < LARGE) return undefined;
  return new Promise((resolve) => systemClock.setTimeout(() => resolve(undefined), 0));
}

/** Text that is not JSON may be repaired, once the tool is ready. */
function keepText(call: Call, text: string): StepAnswer {
  if (call.settings.repairs.length === 0 || call.hasText) return notJson(call, "");
  call.args = text;
  call.argumentLength = text.length;
  call.hasText = true;
  return undefined;
}

function notJson(call: Call, why: string): ToolFailure {
  return call.fail("invalid_arguments", `its arguments are not JSON${why}`);
}

function tooLarge(call: Call): ToolFailure {
  const { maxArgumentBytes } = call.settings;
  return call.fail(
    "invalid_arguments",
    `its arguments are larger than ${maxArgumentBytes} bytes of JSON`,
  );
}

/** What a repair that says nothing else is called in the result. */
const REPAIRED = "the arguments were repaired";
const MAX_REPAIRS = 16;

/**
 * Has arguments repaired that do not fit, each repair once and in order, until they fit. What is
 * repaired goes the way of all arguments from here on: hooks, rules and approvers see nothing else.
 */
export function repairArguments(call: Call): StepAnswer | Promise<StepAnswer> {
  if (call.repaired) {
    call.hasText = false;
    return read(call, call.repaired.arguments);
  }
  const wrong = misfits(call);
  return wrong instanceof Promise
    ? wrong.then((issues) => repair(call, issues))
    : repair(call, wrong);
}

function repair(
  call: Call,
  issues: readonly Issue[] | undefined,
): StepAnswer | Promise<StepAnswer> {
  return issues === undefined ? undefined : tryRepairs(call, issues);
}

async function tryRepairs(call: Call, found: readonly Issue[]): Promise<StepAnswer> {
  const { decode } = call.request;
  let issues = found;
  const notes: ArgumentRepair[] = [];
  for (const repair of call.settings.repairs) {
    const { args, argumentLength, hasText } = call;
    try {
      const answer = await repair(new CallView(call), issues);
      if (call.over) return undefined;
      if (answer === undefined || answer === null) continue;
      call.hasText = true;
      if (
        isObject(answer) && isWritten(answer.arguments) &&
        await read(call, answer.arguments) === undefined &&
        (!hasText || !decode || await read(call, atOnce(decode(call.args))) === undefined)
      ) {
        call.hasText = false;
        notes.push(...readNotes(answer.repairs));
        const left = await misfits(call);
        if (left === undefined) break;
        issues = left;
        continue;
      }
      refuse(
        "repair the arguments",
        "what it answered has no arguments that are JSON, or too large ones; {} is written out",
      );
    } catch (error) {
      call.report("repair", error);
    }
    Object.assign(call, { args, argumentLength, hasText });
  }
  if (call.hasText) return notJson(call, "");
  if (notes.length > 0) {
    const repairs = Object.freeze(notes.slice(0, MAX_REPAIRS));
    call.repaired = { arguments: frozenCopy(call.args), repairs };
  }
  return undefined;
}

/** Whether a repair has answered something: nothing stands for `{}` only where a model says it. */
function isWritten(args: unknown): boolean {
  return typeof args === "string" ? !["", "null"].includes(args.trim()) : (args ?? null) !== null;
}

/** What is wrong with the arguments by the tool's schema; `undefined` if nothing is. */
function misfits(
  call: Call,
): readonly Issue[] | undefined | Promise<readonly Issue[] | undefined> {
  if (call.hasText) return [NOT_JSON];
  const { tool } = call;
  if (tool.parametersStandard && !tool.view) {
    const checked = checkStandard(call);
    return checked instanceof Promise ? checked.then(({ issues }) => issues) : checked.issues;
  }
  return issuesOf(call.runtime.parameters, call.args, call.argumentLength);
}

const NOT_JSON: Issue = Object.freeze({
  path: "",
  keyword: "json",
  expected: "JSON",
  message: "The arguments are not JSON",
});

/** What was repaired, with texts of bounded length. */
function readNotes(list: unknown): ArgumentRepair[] {
  if (!Array.isArray(list) || list.length === 0) return [{ path: "", message: REPAIRED }];
  return list.slice(0, MAX_REPAIRS).map((note) => {
    const { path, message } = (note ?? {}) as Record<string, unknown>;
    return {
      path: typeof path === "string" ? clip(path, 300) : "",
      message: isWord(message) ? clip(message, 300) : REPAIRED,
    };
  });
}

/** Checks the arguments against the tool's JSON Schema. */
export function checkArguments(call: Call): StepAnswer {
  const { parameters } = call.runtime;
  return atOnce(parameters.check(call.args, call.argumentLength)) === true
    ? undefined
    : misfit(call, atOnce(parameters.issues(call.args)), call.tool);
}

/**
 * Makes the arguments of a view those of its tool, and checks them against that tool's own schema:
 * a library's schema is the next step's.
 */
export function leadBack(call: Call): StepAnswer {
  for (let { view } = call.tool; view; view = view.tool.view) {
    const { tool } = view;
    call.args = view.lead(call.args);
    if (tool.parametersStandard && !tool.view) break;
    const issues = issuesOf(compileOnce(call.host.engine, tool.parameters), call.args);
    if (issues !== undefined) return misfit(call, issues, tool);
  }
  return undefined;
}

/** What is wrong with arguments of `shown`, in the words of `tool`, which is that tool or its view. */
export function inWordsOf(tool: Tool, issue: Issue, shown?: Tool): Issue {
  const { view } = tool;
  return view === undefined || tool === shown
    ? issue
    : view.tell(inWordsOf(view.tool, issue, shown));
}

/** Has the library of the tool's schema check them: it also fills in defaults and transforms. */
export function checkStandard(call: Call): StandardOutcome | Promise<StandardOutcome> {
  const schema = call.tool.parametersStandard;
  return schema ? validateStandard(schema, call.args) : { value: call.args };
}

export function readStandard(call: Call, { issues, value }: StandardOutcome): StepAnswer {
  if (issues !== undefined) return misfit(call, issues);
  call.plainArgs = call.args;
  call.args = value;
  return undefined;
}

/** @param shown Whose arguments they are; by default those of the tool behind all views. */
function misfit(call: Call, issues: readonly Issue[], shown?: Tool): ToolFailure {
  const told = issues.map((issue) => inWordsOf(call.tool, issue, shown));
  return call.misfit("invalid_arguments", "its arguments do not fit", told);
}
