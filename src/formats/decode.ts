/** Decodes the calls in a provider's response: the tools' ids, and their arguments. */

import { nearIds } from "../tool/mod.ts";
import { decodeArguments } from "./argument_rewrite.ts";
import type { WireCall } from "./call_format.ts";
import { isWhole, parsed } from "./wire.ts";
import { type ExportNames, quoted } from "./export_names.ts";
import { checkTarget, type Target } from "./target.ts";

/** The reason not to run a call. */
export interface CallProblem {
  /** The code of the failure of the call. */
  readonly code: "unknown_tool" | "invalid_arguments";
  /** The message for the model, as a sentence. */
  readonly message: string;
}

interface CallParts {
  /** The provider's id of the call, or `call_1`, `call_2`… in the order of the calls. */
  readonly callId: string;
  /** The name that the model wrote. */
  readonly wireName: string;
  readonly namespace?: string;
  /** The arguments in the tool's own form. A dispatcher reports text that is not JSON. */
  readonly arguments: unknown;
  /** The call as the provider sent it. */
  readonly raw: unknown;
}

/** A call for a dispatcher: `name` is the tool's id. A call with a `problem` must not be run. */
export type DecodedCall =
  & CallParts
  & (
    | { readonly name: string; readonly problem?: undefined }
    | { readonly name: undefined; readonly problem: CallProblem }
  );

const MAX_NEAR = 3;
/** The maximum number of unknown names in one response that are compared with the tools. */
const MAX_HINTS = 16;

/** Decodes the calls in a response of a target, by its record. */
export function decodeCallsOf(
  target: Target,
  response: unknown,
  names: ExportNames,
): readonly DecodedCall[] {
  const read = checkTarget(target).calls.read(response);
  if (typeof names?.idOf !== "function") {
    throw new TypeError("Cannot decode the calls: names must be the names of an export");
  }
  const wires = read.filter((wire) => isOurs(wire, names));
  const taken = new Set(wires.map(({ id }) => id));
  let generatedIds = 0;
  let unknownCount = 0;
  return wires.map((wire) => {
    let callId = wire.id;
    while (callId === undefined || callId === "") {
      generatedIds++;
      if (!taken.has(`call_${generatedIds}`)) callId = `call_${generatedIds}`;
    }
    const call = decodeWireCall(wire, callId, names, unknownCount < MAX_HINTS);
    if (call.name === undefined) unknownCount++;
    return call;
  });
}

/** True if the host runs the call. It runs a search for tools only if the export has one. */
export function isOurs({ searches }: WireCall, names: ExportNames): boolean {
  return searches !== true || searchIn(names) !== undefined;
}

function searchIn(names: ExportNames): string | undefined {
  return names.encodings.find((encoding) => encoding.searches === true)?.id;
}

/** @param isHinted True to suggest the tools with similar names for an unknown name. */
export function decodeWireCall(
  wire: WireCall,
  callId: string,
  names: ExportNames,
  isHinted = true,
): DecodedCall {
  const { name: wireName, namespace, raw, input } = wire;
  const id = wire.toolId ??
    (wire.searches === true ? searchIn(names) : names.idOf(wireName, namespace));
  const encoding = id === undefined ? undefined : names.encodingOf(id);
  const value = typeof input === "string" ? parsed(input) : input ?? {};
  const parts = {
    callId,
    wireName,
    ...(namespace === undefined ? {} : { namespace }),
    arguments: typeof value === "string" ? value : decodeArguments(value, encoding?.input),
    raw,
  };
  const offered = isHinted ? names.encodings : [];
  const problem = findProblem(wire, encoding !== undefined, offered);
  return id === undefined || problem !== undefined
    ? { ...parts, name: undefined, problem: problem ?? unknownTool(wire, offered) }
    : { ...parts, name: id };
}

function findProblem(
  wire: WireCall,
  isExported: boolean,
  offered: ExportNames["encodings"],
): CallProblem | undefined {
  if (wire.refusal !== undefined) return toProblem("unknown_tool", wire, wire.refusal);
  if (!isExported) return unknownTool(wire, offered);
  // Arguments that were cut off may be valid JSON with another meaning.
  return wire.cutOff === true && !isWhole(wire.input)
    ? toProblem("invalid_arguments", wire, "the response ended before its arguments were complete")
    : undefined;
}

export function toProblem(code: CallProblem["code"], wire: WireCall, why: string): CallProblem {
  return { code, message: `Cannot call ${quoted(wire)}: ${why}` };
}

function unknownTool(wire: WireCall, offered: ExportNames["encodings"]): CallProblem {
  const near = nearIds(wire.name, new Set(offered.map(({ name }) => name)))
    .flatMap((name) => offered.filter((encoding) => encoding.name === name))
    .slice(0, MAX_NEAR);
  const hint = near.length === 0 ? "" : `. Did you mean ${near.map(quoted).join(" or ")}?`;
  return toProblem("unknown_tool", wire, `no tool of this name was offered${hint}`);
}
