/** Removes the tokens of calls from their results, and from errors for the host's log. */

import { attemptOr, isObject, type ToolResult } from "../../tool/mod.ts";
import { causesOf } from "../http/runtime.ts";

/** Shorter tokens are not removed: they would occur in other words. */
const MIN_TOKEN = 6;
const MAX_RECENT = 4_096;

/** The tokens that calls have received. */
export class RecentTokens {
  /** The oldest is first. */
  readonly #tokens: Set<string> = new Set();

  add(token: string): void {
    this.#tokens.delete(token);
    this.#tokens.add(token);
    const [oldest = ""] = this.#tokens;
    if (this.#tokens.size > MAX_RECENT) this.#tokens.delete(oldest);
  }

  /** Returns an error without tokens: the error itself, if it and its causes have none. */
  redact(error: unknown): unknown {
    const textOf = (one: unknown): string => `${one}${Object(one).stack}${JSON.stringify(one)}`;
    // An error that cannot be written as JSON may contain a token.
    const text = attemptOr(undefined, () => [error, ...causesOf(error)].map(textOf).join());
    const tokens = [...this.#tokens].flatMap(formsOf)
      .filter((token) => text?.includes(token) ?? true);
    if (tokens.length === 0) return error;
    const { message = String(error), stack = "" } = Object(error);
    const clean = new Error(withoutTokens(message, tokens));
    return Object.assign(clean, { stack: withoutTokens(stack, tokens) });
  }
}

/** Returns a result without tokens: the result itself, if it has none. */
export function redactResult(result: ToolResult, tokens: readonly string[]): ToolResult {
  const forms = tokens.flatMap(formsOf);
  const text = JSON.stringify(result);
  if (!forms.some((form) => text.includes(escaped(form)))) return result;
  return JSON.parse(text, (_, value) => {
    if (typeof value === "string") return withoutTokens(value, forms);
    if (!isObject(value)) return value;
    // The name of a member may contain a token.
    const members = Object.entries(value);
    return Object.fromEntries(members.map(([name, own]) => [withoutTokens(name, forms), own]));
  });
}

/** Returns a token as it is, within a URL, and within JSON in a text. */
function formsOf(token: string): readonly string[] {
  return [...new Set([token, encodeURIComponent(token), escaped(token)])];
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function withoutTokens(text: string, tokens: readonly string[]): string {
  return tokens.filter(({ length }) => length >= MIN_TOKEN)
    .reduce((rest, token) => rest.replaceAll(token, "[credential]"), text);
}
