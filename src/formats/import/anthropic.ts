/**
 * Anthropic: the `tools` of a Messages request.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { beginDraft, keepExtra, readSharedHints } from "./draft_fields.ts";
import { entriesOf } from "./entries.ts";
import { flagIn, isMembers, listIn, member, type Members, quote, textIn } from "./fields.ts";
import { readParameters } from "./input_schema.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";
import type { ImportOptions } from "./types.ts";

/** The fields of a tool that plue has words for. */
const KNOWN: ReadonlySet<string> = new Set([
  "type",
  "name",
  "description",
  "input_schema",
  "input_examples",
  "strict",
  "defer_loading",
  "allowed_callers",
  "cache_control",
  "eager_input_streaming",
]);

/** Whether a document looks like Anthropic's. */
export function looksLikeAnthropic(document: unknown): boolean {
  return entriesOf(document, ["tools"], []).some(({ value }) =>
    member(value, "input_schema") !== undefined
  );
}

/** Reads the tools of a document. */
export function readAnthropic(intake: Intake, document: unknown, options: ImportOptions): void {
  for (const { value, path } of entriesOf(document, ["tools"], [], intake)) {
    if (!intake.count(path)) return;
    const tool = intake.copy(value, path);
    if (tool !== undefined) readTool(intake, tool, path, options);
  }
}

function readTool(intake: Intake, tool: Members, path: string, options: ImportOptions): void {
  const name = textIn(tool, "name");
  const type = tool["type"] ?? "custom";
  if (type !== "custom") {
    intake.reject(
      name,
      path,
      "type",
      `Cannot import a tool whose type is ${
        quote(type)
      }: the provider runs it, and it has no schema`,
    );
    return;
  }
  const draft = beginDraft(intake, tool, path, options.namespace);
  if (draft === undefined) return;
  draft.parameters = readParameters(intake, draft, tool["input_schema"], `${path}/input_schema`);
  if (draft.parameters === undefined) return;
  const examples = listIn(tool, "input_examples");
  if (examples !== undefined) draft.examples = examples.map((input) => ({ input }));
  readHints(intake, draft, tool);
  keepExtra(draft, tool, KNOWN);
  intake.add(draft);
}

function readHints(intake: Intake, draft: Draft, tool: Members): void {
  const { provider, path } = draft;
  readSharedHints(draft, tool);
  const streaming = flagIn(tool, "eager_input_streaming");
  const cache = tool["cache_control"];
  if (streaming !== undefined) provider.eagerInputStreaming = streaming;
  if (cache === undefined || cache === null) return;
  const ttl = member(cache, "ttl");
  if (
    isMembers(cache) && cache["type"] === "ephemeral" &&
    (ttl === undefined || ttl === "5m" || ttl === "1h")
  ) provider.cacheControl = { type: "ephemeral", ...(ttl === undefined ? {} : { ttl }) };
  else {
    intake.warn(
      draft,
      `${path}/cache_control`,
      "cache_control",
      `The cache_control of "${clip(draft.sourceName)}" is not known, and is left out`,
    );
  }
}
