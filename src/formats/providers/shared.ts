/**
 * What several provider files use to write tools and to read streams.
 *
 * @module
 */

import { isObject, type JsonSchema } from "../../tool/mod.ts";
import type { StreamFormat, StreamStep, WireCall } from "../call_format.ts";
import type { Target, ToolView } from "../target.ts";

/** A target whose request has a list of its tools. */
export type ListTarget<Id extends string, Tool, Part, Message = Part> = Target<
  Id,
  Tool,
  Tool[],
  Part,
  Message
>;

export function unlessEmpty<Item>(list: readonly Item[]): Item[] | undefined {
  return list.length === 0 ? undefined : [...list];
}

/** The description, for targets where it may be left out. */
export function descriptionOf(view: ToolView): { description?: string } {
  return view.sendsDescription ? { description: view.description } : {};
}

/** A schema as an object, for fields that do not take `true` and `false`. */
export function asObject(schema: JsonSchema): { [keyword: string]: unknown } {
  if (typeof schema === "boolean") return schema ? {} : { not: {} };
  return schema as { [keyword: string]: unknown };
}

/** A mutable JSON value, as the types of some SDKs require. */
export type WireValue =
  | null
  | boolean
  | number
  | string
  | WireValue[]
  | { [key: string]: WireValue };

/**
 * How a provider streams whose chunks are responses, each with whole calls.
 *
 * @param read Reads the calls of a response.
 * @param fields Fields of which a chunk with calls has at least one.
 */
export function streamResponses(
  read: (response: unknown) => readonly WireCall[],
  fields: readonly string[],
): () => StreamFormat {
  return () => {
    let count = 0;
    return {
      steps: (event) => {
        if (!fields.some((field) => isObject(event[field]) || Array.isArray(event[field]))) {
          return [];
        }
        return read(event)
          .map(({ raw }): StreamStep => ({ type: "whole", key: `${count++}`, raw }));
      },
      rebuild: () => undefined,
      endsSilently: true,
    };
  };
}
