/**
 * What the entries of all providers have in common: a name, hints under the same keys, and fields
 * that plue has no words for.
 *
 * @module
 */

import { flagIn, listIn, type Members, textIn } from "./fields.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";

/**
 * Begins a draft of an entry.
 *
 * @param at Where the name stands, if that is not where the entry stands.
 * @returns The draft, or `undefined` if the entry was rejected for its name.
 */
export function beginDraft(
  intake: Intake,
  tool: Members,
  path: string,
  namespace: string | undefined,
  at: string = path,
): Draft | undefined {
  const name = textIn(tool, "name");
  if (name === undefined || name === "") {
    intake.reject(undefined, at, "name", 'Cannot import the tool: it must have a "name"');
    return undefined;
  }
  return {
    sourceName: name,
    path,
    namespace,
    description: textIn(tool, "description"),
    hints: {},
    // None of these providers has annotations: what is made up is not sent on as if they did.
    provider: { annotations: null },
  };
}

/** Reads the hints that OpenAI, Anthropic and Bedrock write alike. */
export function readSharedHints({ provider }: Draft, tool: Members): void {
  const strict = flagIn(tool, "strict");
  const deferLoading = flagIn(tool, "defer_loading");
  const callers = listIn(tool, "allowed_callers");
  if (strict !== undefined) provider.strict = strict;
  if (deferLoading !== undefined) provider.deferLoading = deferLoading;
  if (callers?.every((caller) => typeof caller === "string") === true) {
    provider.allowedCallers = callers as readonly string[];
  }
}

/** Keeps the fields that are not `known`. */
export function keepExtra({ provider }: Draft, tool: Members, known: ReadonlySet<string>): void {
  const extra = Object.keys(tool).filter((field) => !known.has(field));
  if (extra.length === 0) return;
  provider.extra = Object.fromEntries(extra.map((field) => [field, tool[field]]));
}
