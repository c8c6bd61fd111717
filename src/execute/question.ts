/**
 * Reads questions of tools and answers of their callers.
 *
 * @module
 */

import { admitSchema, type SchemaEngine } from "../schema/mod.ts";
import {
  type Answer,
  checkWord,
  cleanText,
  isObject,
  type JsonSchema,
  must,
  type Question,
  type QuestionFields,
  type QuestionKind,
  readFields,
  refuse,
} from "../tool/mod.ts";
import { frozenCopy, readJson } from "./json_value.ts";

/** How many bytes of JSON the answers and the results of steps of a call have together, at most. */
export const MAX_MEMORY_BYTES = 65_536;

const MAX_MESSAGE = 2_000;

const KINDS: readonly QuestionKind[] = ["input", "approval", "authorization", "client"];

const FIELDS = {
  kind: must(KINDS.join(" or "), (kind): kind is QuestionKind => KINDS.includes(kind as never)),
  message: (action: string, message: unknown, place: string): string =>
    cleanText(checkWord(action, message, place), MAX_MESSAGE),
  // The engine checks it.
  schema: (_action: string, schema: unknown): JsonSchema => schema as JsonSchema,
  // Written anew: people would be shown a line feed or an escape that is in it.
  url(action: string, url: unknown, place: string): string {
    const href = URL.canParse(url as string) ? new URL(url as string).href : "";
    return /^https?:/.test(href)
      ? href
      : refuse(action, `${place} must be an address that begins with https:// or http://`);
  },
};

/** Checks a question. @throws {TypeError} */
export function readQuestion(
  action: string,
  key: string,
  fields: QuestionFields,
  engine: SchemaEngine,
): Question {
  if (!isObject(fields)) refuse(action, "the question must be an object");
  const { kind = "input", message, schema, ...rest } = readFields(action, fields, FIELDS);
  if (schema !== undefined) admitSchema(engine, schema, {});
  const more = schema === undefined ? rest : { ...rest, schema: frozenCopy(schema) ?? true };
  if (message === undefined) refuse(action, 'it has no "/message"');
  if ((more.url !== undefined) !== (kind === "authorization")) {
    refuse(action, 'a question for an authorization, and no other, has a "/url"');
  }
  if (schema !== undefined && kind !== "input" && kind !== "client") {
    refuse(action, 'only a question for input has a "/schema"');
  }
  return { key, kind, message, ...more };
}

/** Reads an answer; `undefined` if it is none. */
export function readAnswer(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined;
  const { action, content } = value;
  if (action === "decline" || action === "cancel") return Object.freeze({ action });
  if (action !== "accept") return undefined;
  if (content === undefined) return Object.freeze({ action });
  const verdict = readJson(content, MAX_MEMORY_BYTES);
  const copy = verdict.kind === "json" ? frozenCopy(verdict.value) : undefined;
  return copy === undefined ? undefined : Object.freeze({ action, content: copy });
}
