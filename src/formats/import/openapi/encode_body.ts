/**
 * The body of a request, in the media types that have a text.
 *
 * @module
 */

import type { BodyBinding, ValueStyle } from "./operation.ts";
import { isNothing, type Pair, textOf, UnsendableArgument, writePairs } from "./serialize.ts";

/** A body, ready to be sent. */
export interface EncodedBody {
  readonly contentType: string;
  readonly text: string;
}

/** Lists are repeated, objects are JSON: what OpenAPI says of a form where nothing else is said. */
const FORM: ValueStyle = { style: "form", explode: true };

/**
 * Writes a body.
 *
 * @param key The argument that it came from, for messages; `""` if it came from several.
 * @throws {UnsendableArgument} If the value does not fit the media type.
 */
export function encodeBody(value: unknown, binding: BodyBinding, key: string): EncodedBody {
  const { kind, mediaType } = binding;
  switch (kind) {
    case "json":
      return { contentType: mediaType, text: JSON.stringify(value) };
    case "text":
      return { contentType: `${mediaType}; charset=utf-8`, text: textOf(value) };
    case "form": {
      const pairs = membersOf(value, key).flatMap(([member, part]) =>
        formPairs(member, part, binding, key)
      );
      return { contentType: mediaType, text: pairs.map((pair) => pair.join("=")).join("&") };
    }
    case "multipart":
      return multipart(membersOf(value, key));
  }
}

function membersOf(value: unknown, key: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UnsendableArgument(key, "an object");
  }
  return Object.entries(value).filter(([, part]) => !isNothing(part));
}

function formPairs(
  member: string,
  part: unknown,
  { encoding = {} }: BodyBinding,
  key: string,
): Pair[] {
  const style = Object.hasOwn(encoding, member) ? encoding[member] : undefined;
  if (style !== undefined) return writePairs(member, part, style, key);
  const json = typeof part === "object" && part !== null && !Array.isArray(part);
  return writePairs(member, part, json ? { ...FORM, json } : FORM, key);
}

/** RFC 7578, with text parts only. */
function multipart(members: readonly [string, unknown][]): EncodedBody {
  // Random, so that no argument can contain it and end its part early.
  const boundary = `plue-${crypto.randomUUID()}`;
  const parts = members.flatMap(([member, part]) =>
    (Array.isArray(part) ? part : [part]).map((item) => {
      const json = typeof item === "object" && item !== null;
      return `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(member)}"\r\n` +
        (json ? "content-type: application/json\r\n" : "") + `\r\n${textOf(item)}\r\n`;
    })
  );
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    text: `${parts.join("")}--${boundary}--\r\n`,
  };
}

/** As browsers write names: what would end the name or the line is escaped. */
function quoted(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
