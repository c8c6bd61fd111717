/**
 * Readers for the members of a document that somebody else wrote: what is not there, or not of the
 * type, is `undefined`.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";

/** An object of a document. */
export interface Members {
  readonly [key: string]: unknown;
}

/** Whether `value` is an object that is no list. */
export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own member of an object: `constructor` and its like are not there unless they were written. */
export function member(value: unknown, key: string): unknown {
  return isMembers(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** A member that is an object. */
export function objectIn(value: unknown, key: string): Members | undefined {
  const found = member(value, key);
  return isMembers(found) ? found : undefined;
}

/** A member that is a list. */
export function listIn(value: unknown, key: string): readonly unknown[] | undefined {
  const found = member(value, key);
  return Array.isArray(found) ? found : undefined;
}

/** A member that is a string. */
export function textIn(value: unknown, key: string): string | undefined {
  const found = member(value, key);
  return typeof found === "string" ? found : undefined;
}

/** A member that is a string with something in it. */
export function wordsIn(value: unknown, key: string): string | undefined {
  const found = textIn(value, key);
  return found === undefined || found.trim() === "" ? undefined : found;
}

/** A member that is `true` or `false`. */
export function flagIn(value: unknown, key: string): boolean | undefined {
  const found = member(value, key);
  return typeof found === "boolean" ? found : undefined;
}

/** The message of what was thrown. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** A value in a message: a string in quotes, of anything else the type. */
export function quote(value: unknown, length?: number): string {
  return typeof value === "string" ? `"${clip(value, length)}"` : `of type ${typeof value}`;
}
