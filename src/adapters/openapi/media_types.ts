/**
 * Media types: which of those that a document offers is used, and how it is written.
 *
 * @module
 */

import type { JsonRecord } from "../../formats/importer_kit.ts";
import type { BodyBinding } from "./build_request.ts";

/** A type and a subtype, each a token, without parameters. */
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,100}\/[a-z0-9!#$&^_.+*-]{1,100}$/;

/** The media types of a `content` map as they are written there, the preferred ones first. */
export function mediaTypes(content: JsonRecord): readonly string[] {
  return Object.keys(content).map((key) => ({ key, rank: rankOf(plainType(key)) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ key }) => key);
}

/** A media type in lower case, without parameters. */
export function plainType(type: string): string {
  return type.split(";", 1).join("").trim().toLowerCase();
}

/** Whether a plain media type is JSON. */
export function isJson(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

/** Whether JSON may be sent or received as a plain media type of a document. */
export function acceptsJson(type: string): boolean {
  return isJson(type) || isWildcard(type);
}

/** How a body of a plain media type is written; `undefined` if it cannot be written. */
export function bodyKind(type: string): Pick<BodyBinding, "kind" | "mediaType"> | undefined {
  if (isWildcard(type)) return { kind: "json", mediaType: "application/json" };
  if (!MEDIA_TYPE.test(type) || type.includes("*")) return undefined;
  if (isJson(type)) return { kind: "json", mediaType: type };
  if (type === "application/x-www-form-urlencoded") return { kind: "form", mediaType: type };
  if (type === "multipart/form-data") return { kind: "multipart", mediaType: type };
  return type.startsWith("text/") ? { kind: "text", mediaType: type } : undefined;
}

function isWildcard(type: string): boolean {
  return type === "*/*" || type === "application/*";
}

const RANKS = { json: 1, form: 2, multipart: 3, text: 4 } as const;

function rankOf(type: string): number {
  if (type === "application/json") return 0;
  const kind = bodyKind(type)?.kind;
  return kind === undefined ? 5 : RANKS[kind];
}
