/**
 * Repairs arguments that do not match their schema, or are not JSON.
 *
 * @module
 */

import {
  type ArgumentRepair,
  atOnce,
  type Check,
  clip,
  isFunction,
  isObject,
  type Issue,
  isWord,
  must,
  refuse,
  type ToolResult,
} from "../../tool/mod.ts";
import { isWritten, parseArguments, unparsed, UnparsedText } from "../arguments.ts";
import { issuesBefore } from "../checks.ts";
import { CallView } from "../context.ts";
import { frozenCopy } from "../json_value.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next, Outcome } from "../layer.ts";
import type { RepairHook } from "../ports.ts";
import { resumptionOf } from "../resumption.ts";
import type { RepairedArguments } from "../suspension.ts";

const checkRepair: Check<RepairHook> = must(
  "a function or a list of functions",
  (value): value is RepairHook => isFunction(value),
);

/** The layer of repairs. */
export interface RepairLayer extends Layer {
  /** What was repaired in the arguments of a call; `undefined` if nothing was. */
  of(call: Call): RepairedArguments | undefined;
}

/**
 * A layer that has arguments repaired, each repair once and in order, until they are valid. Repaired
 * arguments take the path of all arguments from here on: hooks, rules and approvers see nothing else.
 *
 * @throws {TypeError} If a repair is not a function.
 */
export function repair(given: RepairHook | readonly RepairHook[]): RepairLayer {
  const hooks = [given].flat().map((one) => checkRepair(MAKE, one, "repair"));
  const repaired: WeakMap<Call, RepairedArguments> = new WeakMap();
  const note = (call: Call, next: Next): Outcome => {
    const done = repaired.get(call);
    if (done !== undefined) call.atEnd((result) => ({ ...result, repaired: done.repairs }));
    return next(call);
  };
  return {
    name: "repair",
    stage: "input",
    repairsText: true,
    of: (call) => repaired.get(call),
    for: () => (call, next) => {
      const before = resumptionOf(call.request)?.repaired;
      if (before !== undefined) return repeat(repaired, call, before, () => note(call, next));
      const issues = issuesBefore(call);
      if (issues === undefined) return next(call);
      return repairWith(hooks, repaired, call, issues, () => note(call, next));
    },
  };
}

/** A call that continues is not repaired again: it takes the arguments of its first part. */
async function repeat(
  repaired: WeakMap<Call, RepairedArguments>,
  call: Call,
  before: RepairedArguments,
  next: () => Outcome,
): Promise<ToolResult> {
  repaired.set(call, before);
  return await parseArguments(call, before.arguments) ?? await next();
}

async function repairWith(
  hooks: readonly RepairHook[],
  repaired: WeakMap<Call, RepairedArguments>,
  call: Call,
  found: ReturnType<typeof issuesBefore>,
  next: () => Outcome,
): Promise<ToolResult> {
  let issues = await call.wait("repairing the arguments", Promise.resolve(found));
  const notes: ArgumentRepair[] = [];
  for (const hook of hooks) {
    if (issues === undefined) break;
    const changes = await call.wait("repairing the arguments", tryRepair(hook, call, issues));
    if (changes === undefined) continue;
    notes.push(...changes);
    issues = await issuesBefore(call);
  }
  if (call.arguments instanceof UnparsedText) return unparsed(call);
  if (notes.length > 0) {
    const repairs = Object.freeze(notes.slice(0, MAX_REPAIRS));
    repaired.set(call, { arguments: frozenCopy(call.arguments), repairs });
  }
  return await next();
}

/** Calls one repair. Returns what it changed; `undefined` if it changed nothing, or failed. */
async function tryRepair(
  hook: RepairHook,
  call: Call,
  issues: readonly Issue[],
): Promise<readonly ArgumentRepair[] | undefined> {
  const before = call.arguments;
  const wasText = before instanceof UnparsedText;
  const { decode } = call.request;
  try {
    const answer = await hook(new CallView(call, wasText ? before.text : before), issues);
    if (call.isOver || answer === undefined || answer === null) return undefined;
    if (
      isObject(answer) && isWritten(answer.arguments) &&
      await parseArguments(call, answer.arguments) === undefined &&
      (!wasText || !decode ||
        await parseArguments(call, atOnce(decode(call.arguments))) === undefined)
    ) return readNotes(answer.repairs);
    refuse(
      "repair the arguments",
      "what it answered has no arguments that are JSON, or too large ones; {} is written out",
    );
  } catch (error) {
    call.report("repair", error);
    call.setArguments(before, call.settings.maxArgumentBytes);
  }
  return undefined;
}

/** The note of a repair that says nothing else. */
const REPAIRED = "the arguments were repaired";
const MAX_REPAIRS = 16;

/** What was repaired, with texts of bounded length. */
function readNotes(list: unknown): readonly ArgumentRepair[] {
  if (!Array.isArray(list) || list.length === 0) return [{ path: "", message: REPAIRED }];
  return list.slice(0, MAX_REPAIRS).map((note) => {
    const { path, message } = (note ?? {}) as Record<string, unknown>;
    return {
      path: typeof path === "string" ? clip(path, 300) : "",
      message: isWord(message) ? clip(message, 300) : REPAIRED,
    };
  });
}
