/**
 * Reads a provider's response: which tools a model calls, with which arguments.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { nearIds } from "../../select/mod.ts";
import type { ExportNames, TargetName, WireName } from "../types.ts";
import { callFormatOf } from "./formats.ts";
import { decodeInput, isWhole } from "./input.ts";
import type { CallProblem, DecodedCall, WireCall } from "./types.ts";

/** How many names a model is told of that wrote a wrong one. */
const MAX_NEAR = 3;

/**
 * Reads the calls in a provider's response. It takes a whole response, or its natural parts: the
 * message, its content, a list of calls, one call.
 *
 * Names become ids again, and what the export changed in the arguments is undone: nulls that strict
 * mode added, renamed keys, values written as text. A call that must not be run (no tool was
 * exported under its name, or its arguments were cut off) has a `problem`, and no `name`.
 *
 * `dispatchCalls` runs what comes of it and answers every call. Who runs calls by hand answers one
 * with a `problem` by `ToolResult.error(problem.code, problem.message)`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { decodeCalls, exportTools } from "@plue/tools/formats";
 *
 * const status = defineTool({ namespace: "chain", name: "status", description: "Tells where it is." });
 * const { names } = exportTools([status], "anthropic");
 * const [call] = decodeCalls("anthropic", {
 *   role: "assistant",
 *   content: [{ type: "tool_use", id: "toolu_1", name: "chain__status", input: {} }],
 * }, names);
 *
 * assert.equal(call?.name, "chain:status");
 * assert.equal(call?.callId, "toolu_1");
 * ```
 *
 * @param target The target that the tools were exported to.
 * @param response What the provider sent, parsed.
 * @param names The names of the export.
 * @returns The calls, in their order; none if the model calls nothing.
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If the response has another shape; it says where, and quotes nothing.
 */
export function decodeCalls(
  target: TargetName,
  response: unknown,
  names: ExportNames,
): readonly DecodedCall[] {
  const wires = callFormatOf(target).read(response);
  if (typeof names?.idOf !== "function") {
    throw new TypeError("Cannot decode the calls: names must be those of exportTools' answer");
  }
  const taken = new Set(wires.map(({ id }) => id));
  let made = 0;
  return wires.map((wire) => {
    let callId = wire.id;
    while (callId === undefined || callId === "") {
      made++;
      if (!taken.has(`call_${made}`)) callId = `call_${made}`;
    }
    return decodeWireCall(wire, callId, names);
  });
}

/** Decodes one call that was read. */
export function decodeWireCall(wire: WireCall, callId: string, names: ExportNames): DecodedCall {
  const { name: wireName, namespace, raw, input } = wire;
  const id = wire.toolId ?? names.idOf(wireName, namespace);
  const encoding = id === undefined ? undefined : names.encodingOf(id);
  const parts = {
    callId,
    wireName,
    ...(namespace === undefined ? {} : { namespace }),
    arguments: decodeInput(input, encoding?.input),
    raw,
  };
  const problem = problemOf(wire, encoding !== undefined, names);
  return id === undefined || problem !== undefined
    ? { ...parts, name: undefined, problem: problem ?? unknownTool(wire, names) }
    : { ...parts, name: id };
}

function problemOf(
  wire: WireCall,
  exported: boolean,
  names: ExportNames,
): CallProblem | undefined {
  if (wire.refusal !== undefined) return refused("unknown_tool", wire, wire.refusal);
  if (!exported) return unknownTool(wire, names);
  // Arguments that were cut off may still be valid, and mean something else.
  return wire.cutOff === true && !isWhole(wire.input)
    ? refused("invalid_arguments", wire, "the response ended before its arguments were complete")
    : undefined;
}

/** A problem in a sentence that begins as the dispatcher's do. */
export function refused(code: CallProblem["code"], wire: WireCall, why: string): CallProblem {
  return { code, message: `Cannot call ${quoted(wire)}: ${why}` };
}

function quoted({ name, namespace }: WireName | WireCall): string {
  const text = JSON.stringify(clip(name));
  return namespace === undefined ? text : `${text} in namespace ${JSON.stringify(clip(namespace))}`;
}

function unknownTool(wire: WireCall, names: ExportNames): CallProblem {
  const { encodings } = names;
  const near = nearIds(wire.name, new Set(encodings.map(({ name }) => name)))
    .flatMap((name) => encodings.filter((encoding) => encoding.name === name))
    .slice(0, MAX_NEAR);
  const hint = near.length === 0 ? "" : `. Did you mean ${near.map(quoted).join(" or ")}?`;
  return refused("unknown_tool", wire, `no tool of this name was offered${hint}`);
}
