/**
 * Chunks of the message with `tool_calls`: OpenAI Chat and Mistral.
 *
 * @module
 */

import { isCutOff } from "../cut_off.ts";
import { isRecord, type JsonRecord, textOf } from "../shape.ts";
import type { StreamedParts, StreamFormat, StreamStep } from "../types.ts";

/** The key of the legacy `function_call`, of which there is one. */
const LEGACY = "function_call";

/**
 * A chunk names a call by its index, and says id and name once. Some servers leave the index out,
 * or give every call index 0: then a new id with a name begins a new call.
 */
export function streamFunctionCalls(): StreamFormat {
  const keys = new Map<unknown, { readonly key: string; readonly id: string | undefined }>();
  let made = 0;

  function keyOf(delta: JsonRecord, id: string | undefined, name: string | undefined): string {
    const index = typeof delta["index"] === "number" ? delta["index"] : "none";
    const open = keys.get(index);
    const begins = open === undefined ||
      (name !== undefined && id !== undefined && open.id !== undefined && open.id !== id);
    if (!begins) {
      if (open.id === undefined && id !== undefined) keys.set(index, { key: open.key, id });
      return open.key;
    }
    const key = `${made++}`;
    keys.set(index, { key, id });
    return key;
  }

  function deltaSteps(delta: JsonRecord, legacy: boolean): readonly StreamStep[] {
    const called = legacy ? delta : isRecord(delta["function"]) ? delta["function"] : {};
    const id = textOf(delta["id"]);
    const name = textOf(called["name"]);
    const key = legacy ? LEGACY : keyOf(delta, id, name);
    const steps: StreamStep[] = [{
      type: "open",
      key,
      id,
      name,
      start: legacy ? LEGACY : undefined,
    }];
    const text = called["arguments"];
    if (typeof text === "string") steps.push({ type: "text", key, text });
    // Some servers send a call whole, with its arguments as an object.
    else if (isRecord(text)) steps.push({ type: "input", key, text: JSON.stringify(text) });
    return steps;
  }

  function steps(event: JsonRecord): readonly StreamStep[] {
    // Mistral's SDK hands chunks out in `data`.
    const chunk = isRecord(event["data"]) ? event["data"] : event;
    const choices = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
    const choice = choices.find((one) => isRecord(one) && (one["index"] ?? 0) === 0);
    if (!isRecord(choice)) return [];
    const delta = isRecord(choice["delta"]) ? choice["delta"] : {};
    const calls = delta["tool_calls"] ?? delta["toolCalls"];
    const found = (Array.isArray(calls) ? calls : []).filter(isRecord)
      .flatMap((call) => deltaSteps(call, false));
    const legacy = delta["function_call"];
    if (isRecord(legacy)) found.push(...deltaSteps(legacy, true));
    const reason = choice["finish_reason"] ?? choice["finishReason"];
    if (typeof reason === "string") found.push({ type: "finish", cutOff: isCutOff(reason) });
    return found;
  }

  return { steps, rebuild };
}

/** A call as an unstreamed message has it. */
export function rebuild({ id, name, text, start }: StreamedParts): unknown {
  if (start === LEGACY) return { role: "assistant", function_call: { name, arguments: text } };
  return {
    ...(id === undefined ? {} : { id }),
    type: "function",
    function: { name, arguments: text },
  };
}
