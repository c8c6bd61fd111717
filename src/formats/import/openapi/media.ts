/**
 * Media types: which of those that a document offers is used.
 *
 * @module
 */

import type { Members } from "../fields.ts";
import type { BodyBinding } from "./operation.ts";
import { isJson } from "./response.ts";

/** A type and a subtype, each a token. Parameters are dropped before. */
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,100}\/[a-z0-9!#$&^_.+*-]{1,100}$/;

/** The media types of a `content` map as they are written there, those that can be read first. */
export function media(content: Members): readonly string[] {
  return Object.keys(content).map((key) => ({ key, rank: rankOf(plain(key)) })).sort((a, b) =>
    a.rank - b.rank
  ).map(({ key }) => key);
}

/** A media type in lower case, without parameters. */
export function plain(type: string): string {
  return type.split(";", 1).join("").trim().toLowerCase();
}

/** Whether a media type of a document is JSON, or anything. */
export function isJsonMedia(type: string): boolean {
  return isJson(type) || type === "*/*" || type === "application/*";
}

/** How a body of a media type is written, and what it is called on the wire. */
export function bodyKind(type: string): Pick<BodyBinding, "kind" | "mediaType"> | undefined {
  if (type === "*/*" || type === "application/*") {
    return { kind: "json", mediaType: "application/json" };
  }
  if (!MEDIA_TYPE.test(type) || type.includes("*")) return undefined;
  if (isJson(type)) return { kind: "json", mediaType: type };
  if (type === "application/x-www-form-urlencoded") return { kind: "form", mediaType: type };
  if (type === "multipart/form-data") return { kind: "multipart", mediaType: type };
  return type.startsWith("text/") ? { kind: "text", mediaType: type } : undefined;
}

function rankOf(type: string): number {
  if (type === "application/json") return 0;
  const kind = bodyKind(type)?.kind;
  const ranks = { json: 1, form: 2, multipart: 3, text: 4 };
  return kind === undefined ? 5 : ranks[kind];
}
