/** Imports tools from the documents of other libraries and providers. */

import { clip } from "../tool/mod.ts";
import type { ImportResult, ImportToolsOptions, PinnedImport, WithPins } from "./import_options.ts";
import { ImportSession } from "./import_session.ts";
import { textIn } from "./wire.ts";
import { IMPORTERS, type KnownImporter } from "./providers/index.ts";

/** The provider or protocol of a document. */
export type ImportSource = KnownImporter["source"];

/** The sources for {@linkcode importTools}. */
export const IMPORT_SOURCES: readonly ImportSource[] = Object.freeze(
  IMPORTERS.map(({ source }) => source),
);

/** Imports tools, and holds back the tools that differ from their approved definitions. */
export function importTools(
  source: ImportSource | "auto",
  document: unknown,
  options: WithPins<ImportToolsOptions>,
): Promise<PinnedImport<ImportSource>>;
/**
 * Makes tools from a document: the tool list of an MCP server, or the tools of a request to OpenAI,
 * Anthropic, Gemini or Bedrock. `importOpenApi` of `@plue/tools/openapi` reads OpenAPI documents.
 *
 * The document need not be trusted: its size is bounded, and nothing is fetched. An invalid tool is
 * rejected with a reason, and the other tools are imported. An export to the source of a tool
 * returns the tool's original definition.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { importTools } from "@plue/tools/formats";
 *
 * const inputSchema = { type: "object", properties: { number: { type: "integer" } } };
 * const document = [{ name: "get_issue", inputSchema, annotations: { readOnlyHint: true } }];
 * const { tools } = importTools("mcp", document, { namespace: "github" });
 * assert.deepEqual(tools.map((tool) => [tool.id, tool.risk]), [["github:get_issue", "low"]]);
 * ```
 *
 * @throws {TypeError | RangeError} If the source or an option is invalid, never for the document.
 */
export function importTools(
  source: ImportSource | "auto",
  document: unknown,
  options?: ImportToolsOptions,
): ImportResult<ImportSource>;
export function importTools(
  source: ImportSource | "auto",
  document: unknown,
  options: ImportToolsOptions | WithPins<ImportToolsOptions> = {},
): ImportResult<ImportSource> | Promise<PinnedImport<ImportSource>> {
  const { pins, ...rest } = options;
  const { namespace = "" } = rest;
  const imported = readTools(source, document, rest);
  return pins === undefined ? imported : pins.check(imported, namespace);
}

function readTools(
  source: ImportSource | "auto",
  document: unknown,
  options: ImportToolsOptions,
): ImportResult<ImportSource> {
  const found = IMPORTERS.filter((importer) =>
    source === "auto" ? importer.detects(document) : importer.source === source
  );
  const [importer] = found;
  if (source !== "auto" && importer === undefined) {
    const shown = clip(String(source));
    const sources = IMPORT_SOURCES.join(", ");
    throw new TypeError(`Cannot import tools: the source must be auto, ${sources}, not "${shown}"`);
  }
  const session = new ImportSession(importer?.source ?? "auto", options);
  if (importer !== undefined && found.length === 1) {
    importer.read(session, document, options);
    return session.finish() as ImportResult<ImportSource>;
  }
  const likely = found.map((one) => one.source).join(" and ") || "none of the sources";
  const isOpenApi = textIn(document, "openapi") ?? textIn(document, "swagger");
  const message = isOpenApi === undefined
    ? `Cannot detect the source of the document: it looks like ${likely}; name the source`
    : "Cannot import the OpenAPI document: use importOpenApi of @plue/tools/openapi";
  session.reject(undefined, "", "source", message);
  return Object.freeze({ ...session.finish(), source: undefined });
}
