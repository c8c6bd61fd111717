/**
 * The Model Context Protocol: a `tools/list` result, a list of such pages, or a list of tools.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { pointerStep, type ToolIcon } from "../../tool/mod.ts";
import { HINTS, readHints } from "./annotations.ts";
import { isMembers, listIn, member, type Members, objectIn, textIn } from "./fields.ts";
import { readParameters, readReturns } from "./input_schema.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";
import { unwrapResult, unwrapReturns } from "./legacy_result.ts";
import { wrongHeader } from "./mcp_headers.ts";
import type { McpImportOptions } from "./types.ts";

/** The fields of a tool that plue has words for. */
const KNOWN: ReadonlySet<string> = new Set([
  "name",
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
  "icons",
  "_meta",
]);

/** A page of tools, and where it stands. */
interface Page {
  readonly tools: readonly unknown[];
  readonly path: string;
}

/** Whether a document looks like MCP's. */
export function looksLikeMcp(document: unknown): boolean {
  const first = (list: readonly unknown[]): boolean => member(list[0], "inputSchema") !== undefined;
  const page = (value: unknown): boolean => first(listIn(resultOf(value), "tools") ?? []);
  return Array.isArray(document) ? first(document) || page(document[0]) : page(document);
}

/** Reads the tools of a document. */
export function readMcp(intake: Intake, document: unknown, options: McpImportOptions): void {
  for (const { tools, path } of pagesOf(intake, document)) {
    for (const [index, entry] of tools.entries()) {
      const at = `${path}/${index}`;
      if (!intake.count(at)) return;
      const tool = intake.copy(entry, at);
      if (tool !== undefined) readTool(intake, tool, at, options);
    }
  }
}

/** A JSON-RPC response carries the result inside. */
function resultOf(value: unknown): unknown {
  return objectIn(value, "result") ?? value;
}

function pagesOf(intake: Intake, document: unknown): readonly Page[] {
  const pages: Page[] = [];
  const cursors = new Set<string>();
  let open = false;
  const add = (raw: unknown, path: string): boolean => {
    const inner = objectIn(raw, "result");
    const page = inner ?? raw;
    const at = inner === undefined ? path : `${path}/result`;
    const tools = listIn(page, "tools");
    if (tools === undefined) {
      intake.reject(
        undefined,
        at,
        "document",
        'Cannot read the page: it must be a result of "tools/list", with a list of "tools"',
      );
      return true;
    }
    const kind = member(page, "resultType");
    if (kind !== undefined && kind !== "complete") {
      intake.warn(
        undefined,
        `${at}/resultType`,
        "resultType",
        "The server has not finished the list",
      );
    }
    pages.push({ tools, path: `${at}/tools` });
    readCache(intake, page);
    // Some servers end the list with an empty cursor.
    const cursor = textIn(page, "nextCursor") || undefined;
    open = cursor !== undefined;
    if (cursor === undefined) return true;
    if (cursors.has(cursor)) {
      open = false;
      intake.warn(
        undefined,
        `${at}/nextCursor`,
        "nextCursor",
        "The server gave the same cursor twice; what follows is not read",
      );
      return false;
    }
    cursors.add(cursor);
    return true;
  };
  if (!Array.isArray(document)) add(document, "");
  else if (document.some((item) => listIn(resultOf(item), "tools") !== undefined)) {
    for (const [index, page] of document.entries()) if (!add(page, `/${index}`)) break;
  } else return [{ tools: document, path: "" }];
  if (open) {
    intake.warn(
      undefined,
      "",
      "nextCursor",
      "There are more pages: the last one has a next cursor",
    );
  }
  return pages;
}

function readCache(intake: Intake, page: unknown): void {
  const ttlMs = member(page, "ttlMs");
  const scope = member(page, "cacheScope");
  intake.narrowCache({
    ...(typeof ttlMs === "number" && ttlMs >= 0 ? { ttlMs } : {}),
    ...(scope === "public" || scope === "private" ? { scope } : {}),
  });
}

function readTool(intake: Intake, tool: Members, path: string, options: McpImportOptions): void {
  const name = textIn(tool, "name");
  if (name === undefined || name === "") {
    intake.reject(undefined, path, "name", 'Cannot import the tool: it must have a "name"');
    return;
  }
  const draft: Draft = {
    sourceName: name,
    path,
    namespace: options.namespace,
    hints: {},
    provider: {},
  };
  const schemaPath = `${path}/inputSchema`;
  const parameters = readParameters(intake, draft, tool["inputSchema"], schemaPath, "typed");
  if (parameters === undefined) return;
  const header = wrongHeader(parameters);
  if (header !== undefined) {
    const message = `has a wrong "x-mcp-header" at "${clip(header.path, 200)}": ${header.message}`;
    if ((options.transport ?? "http") === "http") {
      intake.reject(
        name,
        schemaPath + header.path,
        "x-mcp-header",
        `Cannot import "${clip(name)}": it ${message}`,
      );
      return;
    }
    intake.warn(draft, schemaPath + header.path, "x-mcp-header", `"${clip(name)}" ${message}`);
  }
  draft.parameters = parameters;
  draft.returns = readReturns(intake, draft, tool["outputSchema"], `${path}/outputSchema`);
  if (options.unwrapResults === true && draft.returns !== undefined) {
    const inner = unwrapReturns(draft.returns);
    if (inner !== undefined) {
      draft.returns = inner;
      draft.readResult = unwrapResult;
    }
  }
  draft.description = readText(intake, draft, tool, "description");
  readAnnotations(intake, draft, tool);
  const title = readText(intake, draft, tool, "title");
  draft.title = title ?? textIn(tool["annotations"], "title");
  if (title === undefined && draft.title !== undefined) draft.provider.title = null;
  readIcons(intake, draft, tool);
  const meta = tool["_meta"];
  if (isMembers(meta)) draft.meta = meta;
  else if (meta !== undefined) wrongField(intake, draft, "_meta", "an object");
  if (draft.meta !== undefined && Object.hasOwn(draft.meta, "provider")) {
    const { provider: _taken, ...rest } = draft.meta;
    draft.meta = rest;
    intake.warn(
      draft,
      `${path}/_meta/provider`,
      "_meta",
      '"provider" in "_meta" is left out: plue uses the name',
    );
  }
  readExtra(draft, tool);
  intake.add(draft);
}

function readText(
  intake: Intake,
  draft: Draft,
  tool: Members,
  field: "title" | "description",
): string | undefined {
  const value = tool[field];
  if (value === undefined || typeof value === "string") return value;
  wrongField(intake, draft, field, "a string");
  return undefined;
}

/** What is absent stays absent: `null` says that there was nothing, and the defaults are not sent back. */
function readAnnotations(intake: Intake, draft: Draft, tool: Members): void {
  const given = tool["annotations"];
  draft.provider.annotations = isMembers(given) ? given : null;
  if (given === undefined) return;
  if (!isMembers(given)) return wrongField(intake, draft, "annotations", "an object");
  draft.hints = readHints(given);
  for (const hint of HINTS) {
    if (given[hint] !== undefined && typeof given[hint] !== "boolean") {
      wrongField(intake, draft, `annotations/${hint}`, "true or false");
    }
  }
}

function readIcons(intake: Intake, draft: Draft, tool: Members): void {
  const icons = tool["icons"];
  if (icons === undefined) return;
  if (Array.isArray(icons) && icons.every((icon) => textIn(icon, "src") !== undefined)) {
    draft.icons = icons as readonly ToolIcon[];
  } else wrongField(intake, draft, "icons", 'a list of objects, each with a "src"');
}

/** `execution`, and the fields of revisions to come. */
function readExtra(draft: Draft, tool: Members): void {
  const extra: [string, unknown][] = [];
  for (const field of Object.keys(tool)) {
    if (KNOWN.has(field)) continue;
    const value = tool[field];
    if (field !== "execution" || !isMembers(value)) {
      extra.push([field, value]);
      continue;
    }
    const { taskSupport, ...more } = value;
    if (taskSupport === "forbidden" || taskSupport === "optional" || taskSupport === "required") {
      draft.provider.taskSupport = taskSupport;
      if (Object.keys(more).length > 0) extra.push([field, more]);
    } else extra.push([field, value]);
  }
  if (extra.length > 0) draft.provider.extra = Object.fromEntries(extra);
}

function wrongField(intake: Intake, draft: Draft, field: string, wanted: string): void {
  const path = `${draft.path}${field.split("/").map(pointerStep).join("")}`;
  intake.warn(
    draft,
    path,
    field,
    `The ${field} of "${clip(draft.sourceName)}" must be ${wanted}, and is left out`,
  );
}
