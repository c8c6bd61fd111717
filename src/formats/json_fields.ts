/**
 * Reads members of JSON from outside. A member that is absent, or not of the type, is `undefined`.
 *
 * @module
 */

import { clip, isObject } from "../tool/mod.ts";

/** A JSON object from outside. */
export interface JsonRecord {
  readonly [key: string]: unknown;
}

/** An own member of an object, so that `constructor` is not found in every one. */
export function member(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

export function objectIn(value: unknown, key: string): JsonRecord | undefined {
  const found = member(value, key);
  return isObject(found) ? found : undefined;
}

export function listIn(value: unknown, key: string): readonly unknown[] | undefined {
  const found = member(value, key);
  return Array.isArray(found) ? found : undefined;
}

export function textIn(value: unknown, key: string): string | undefined {
  const found = member(value, key);
  return typeof found === "string" ? found : undefined;
}

export function wordsIn(value: unknown, key: string): string | undefined {
  const found = textIn(value, key);
  return found === undefined || found.trim() === "" ? undefined : found;
}

export function flagIn(value: unknown, key: string): boolean | undefined {
  const found = member(value, key);
  return typeof found === "boolean" ? found : undefined;
}

/** A value for a message: a string in quotes, or the type of anything else. */
export function quote(value: unknown, length?: number): string {
  return typeof value === "string" ? `"${clip(value, length)}"` : `of type ${typeof value}`;
}
