/**
 * Bedrock Converse: `toolConfig.tools`.
 *
 * @module
 */

import { beginDraft, keepExtra, readSharedHints } from "./draft_fields.ts";
import { entriesOf } from "./entries.ts";
import { isMembers, member, objectIn, textIn } from "./fields.ts";
import { readParameters } from "./input_schema.ts";
import type { Intake } from "./intake.ts";
import type { ImportOptions } from "./types.ts";

/** The fields of a `toolSpec` that plue has words for. */
const KNOWN: ReadonlySet<string> = new Set(["name", "description", "inputSchema", "strict"]);

/** Whether a document looks like Bedrock's. */
export function looksLikeBedrock(document: unknown): boolean {
  return entriesOf(document, ["tools"], ["toolConfig"]).some(({ value }) =>
    member(value, "toolSpec") !== undefined
  );
}

/** Reads the tools of a document. */
export function readBedrock(intake: Intake, document: unknown, options: ImportOptions): void {
  for (const { value, path } of entriesOf(document, ["tools"], ["toolConfig"], intake)) {
    if (!intake.count(path)) return;
    const entry = intake.copy(value, path);
    if (entry !== undefined) readEntry(intake, entry, path, options);
  }
}

function readEntry(
  intake: Intake,
  entry: { readonly [key: string]: unknown },
  path: string,
  options: ImportOptions,
): void {
  if (isMembers(entry["cachePoint"])) {
    intake.warn(
      undefined,
      path,
      "cachePoint",
      "A cache point belongs to a request, and is left out",
    );
    return;
  }
  const tool = objectIn(entry, "toolSpec");
  if (tool === undefined) {
    intake.reject(
      textIn(entry["systemTool"], "name"),
      path,
      "type",
      'Cannot import the entry: only a "toolSpec" has a schema of its arguments',
    );
    return;
  }
  const at = `${path}/toolSpec`;
  const draft = beginDraft(intake, tool, path, options.namespace, at);
  if (draft === undefined) return;
  const schema = member(tool["inputSchema"], "json");
  draft.parameters = readParameters(intake, draft, schema, `${at}/inputSchema/json`);
  if (draft.parameters === undefined) return;
  readSharedHints(draft, tool);
  keepExtra(draft, tool, KNOWN);
  intake.add(draft);
}
