/**
 * Bedrock Converse: `toolConfig.tools`.
 *
 * @module
 */

import type { Draft } from "./draft.ts";
import { beginDraft, keepExtra, readSharedHints } from "./draft_fields.ts";
import { entriesOf } from "./entries.ts";
import { isMembers, member, type Members, objectIn, textIn } from "./fields.ts";
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
  let last: Draft | undefined;
  for (const { value, path } of entriesOf(document, ["tools"], ["toolConfig"], intake)) {
    if (!intake.count(path)) return;
    const entry = intake.copy(value, path);
    if (entry === undefined) continue;
    if (isMembers(entry["cachePoint"])) readCachePoint(intake, last, entry["cachePoint"], path);
    else last = readEntry(intake, entry, path, options) ?? last;
  }
}

/** A cache point covers what stands before it, which its last tool remembers. */
function readCachePoint(
  intake: Intake,
  last: Draft | undefined,
  cachePoint: Members,
  path: string,
): void {
  const { type, ttl } = cachePoint;
  if (
    last !== undefined && type === "default" && (ttl === undefined || ttl === "5m" || ttl === "1h")
  ) {
    last.provider.cacheControl = { type: "ephemeral", ...(ttl === undefined ? {} : { ttl }) };
    return;
  }
  const why = last === undefined ? "stands behind no tool" : "is not known";
  intake.warn(undefined, path, "cachePoint", `The cache point ${why}, and is left out`);
}

function readEntry(
  intake: Intake,
  entry: Members,
  path: string,
  options: ImportOptions,
): Draft | undefined {
  const tool = objectIn(entry, "toolSpec");
  if (tool === undefined) {
    intake.reject(
      textIn(entry["systemTool"], "name"),
      path,
      "type",
      'Cannot import the entry: only a "toolSpec" has a schema of its arguments',
    );
    return undefined;
  }
  const at = `${path}/toolSpec`;
  const draft = beginDraft(intake, tool, path, options.namespace, at);
  if (draft === undefined) return undefined;
  const schema = member(tool["inputSchema"], "json");
  draft.parameters = readParameters(intake, draft, schema, `${at}/inputSchema/json`);
  if (draft.parameters === undefined) return undefined;
  readSharedHints(draft, tool);
  keepExtra(draft, tool, KNOWN);
  intake.add(draft);
  return draft;
}
