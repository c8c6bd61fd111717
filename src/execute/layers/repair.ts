/** Repairs arguments that do not match their schema, or are not JSON. */

import {
  type ArgumentRepair,
  assertSync,
  checkFunction,
  clip,
  fail,
  isObject,
  type Issue,
  isWord,
  type ToolResult,
} from "../../tool/mod.ts";
import { issuesBefore, parseArguments, unparsed, UnparsedText } from "../arguments.ts";
import { CallView, resumptions } from "../context.ts";
import { frozenCopy } from "../json_value.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next, Outcome } from "../layer.ts";
import type { RepairHook } from "../ports.ts";
import type { RepairedArguments } from "../request.ts";

const REPAIRED = "the arguments were repaired";
const MAX_REPAIRS = 16;

/** The layer of repairs. */
export interface RepairLayer extends Layer {
  /** Returns the repairs of a call's arguments, or `undefined`. */
  of(call: Call): RepairedArguments | undefined;
}

/**
 * Creates a layer that repairs arguments: each repair runs once, in order, until the arguments are
 * valid. Hooks, rules and approvers receive only the repaired arguments. The result lists the
 * changes in `repaired`. If a repair throws, the arguments stay unchanged. Stage `input`.
 *
 * @throws {TypeError} If a repair is not a function.
 */
export function repair(repairs: RepairHook | readonly RepairHook[]): RepairLayer {
  const hooks = [repairs].flat();
  for (const hook of hooks) checkFunction(MAKE, hook, "repair");
  const repaired: WeakMap<Call, RepairedArguments> = new WeakMap();
  const note = (call: Call, next: Next): Outcome => {
    const done = repaired.get(call);
    if (done !== undefined) call.atEnd((result) => ({ ...result, repaired: done.repairs }));
    return next(call);
  };
  return {
    name: "repair",
    stage: "input",
    readText: (text) => new UnparsedText(text),
    of: (call) => repaired.get(call),
    for: () => (call, next) => {
      const before = resumptions.get(call.request)?.repaired;
      if (before !== undefined) {
        // A resumed call is not repaired again: it uses the arguments of its first run.
        repaired.set(call, before);
        return parseArguments(call, before.arguments) ?? note(call, next);
      }
      const issues = issuesBefore(call);
      return issues === undefined
        ? next(call)
        : repairWith(hooks, repaired, call, issues, () => note(call, next));
    },
  };
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

/** Calls one repair. Returns its changes, or `undefined` if it changed nothing or failed. */
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
      parseArguments(call, answer.arguments) === undefined &&
      (!wasText || !decode ||
        parseArguments(call, assertSync(decode(call.arguments))) === undefined)
    ) return readNotes(answer.repairs);
    const why = "the returned arguments are not JSON, or are too large";
    fail("repair the arguments", `${why}; return {} to call the tool without arguments`);
  } catch (error) {
    call.report("repair", error);
    call.setArguments(before, call.settings.maxArgumentBytes);
  }
  return undefined;
}

/** Returns true if a repair returned arguments. Missing arguments of a repair do not mean `{}`. */
function isWritten(args: unknown): boolean {
  return typeof args === "string" ? !["", "null"].includes(args.trim()) : (args ?? null) !== null;
}

function readNotes(list: unknown): readonly ArgumentRepair[] {
  const notes = Array.isArray(list) && list.length > 0 ? list : [{}];
  return notes.slice(0, MAX_REPAIRS).map((note) => {
    const { path, message } = Object(note);
    return {
      path: typeof path === "string" ? clip(path, 300) : "",
      message: isWord(message) ? clip(message, 300) : REPAIRED,
    };
  });
}
