/** Imports tools from the documents of other libraries and providers. */

import { clip } from "../tool/mod.ts";
import type { ImportResult, ImportToolsOptions, PinnedImport, WithPins } from "./import_options.ts";
import { ImportSession } from "./import_session.ts";
import { textIn } from "./wire.ts";
import * as providers from "./providers/index.ts";
import type { KnownProvider } from "./targets.ts";

type KnownImporter = NonNullable<KnownProvider["importer"]>;

/** The provider or protocol whose form a document has. */
export type ImportSource = KnownImporter["source"];

// A bundler may list the providers in any order.
const IMPORTERS: ReadonlyMap<string, KnownImporter> = new Map(
  (Object.values(providers) as readonly KnownProvider[])
    .flatMap(({ importer }) => importer === undefined ? [] : [importer])
    .map((importer): [string, KnownImporter] => [importer.source, importer])
    .sort(([a], [b]) => a < b ? -1 : 1),
);

/** The sources that {@linkcode importTools} reads. */
export const IMPORT_SOURCES: readonly ImportSource[] = Object.freeze(
  [...IMPORTERS.keys()] as ImportSource[],
);

/**
 * Imports tools, and holds back the tools that differ from their approved definitions.
 *
 * @returns A promise of the import, with the tools that are held back.
 */
export function importTools(
  source: ImportSource | "auto",
  document: unknown,
  options: WithPins<ImportToolsOptions>,
): Promise<PinnedImport<ImportSource>>;
/**
 * Makes tools from a document: a list of an MCP server, or the tools of a request to OpenAI,
 * Anthropic, Gemini or Bedrock. `importOpenApi` of `@plue/tools/openapi` reads OpenAPI documents.
 *
 * The document need not be trusted. Its size is bounded, and nothing is fetched to read it. A bad
 * tool is rejected with a reason, and the others are imported. The hints of a document about the
 * behaviour of its tools are not verified: set `risk` if that matters.
 *
 * The tool's `meta.provider` records the absent fields, so that an export to the tool's source returns
 * the original definition.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { importTools } from "@plue/tools/formats";
 *
 * const inputSchema = { type: "object", properties: { number: { type: "integer" } } };
 * const { tools, rejected } = importTools("mcp", [
 *   { name: "get_issue", inputSchema, annotations: { readOnlyHint: true } },
 *   { name: "broken", inputSchema: { type: "strng" } },
 * ], { namespace: "github" });
 *
 * assert.deepEqual(tools.map((tool) => [tool.id, tool.risk]), [["github:get_issue", "low"]]);
 * assert.equal(rejected[0]?.name, "broken");
 * ```
 *
 * @returns The tools, warnings about them, and the rejected entries with reasons.
 * @throws {TypeError | RangeError} If the source or an option is invalid. Never for the document.
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
  const found = source === "auto" ? recognise(document) : [IMPORTERS.get(source)];
  const [importer] = found;
  if (source !== "auto" && importer === undefined) {
    const sources = IMPORT_SOURCES.join(", ");
    const given = clip(String(source));
    throw new TypeError(`Cannot import tools: the source must be auto, ${sources}, not "${given}"`);
  }
  if (importer === undefined || found.length > 1) {
    const session = new ImportSession("auto", options);
    const message = isOpenApi(document)
      ? "Cannot import the OpenAPI document: use importOpenApi of @plue/tools/openapi"
      : `Cannot tell what the document is: it looks like ${
        found.length === 0 ? "none of the sources" : found.map((one) => one?.source).join(" and ")
      }; name the source`;
    session.reject(undefined, "", "source", message);
    return Object.freeze({ ...session.finish(), source: undefined });
  }
  const session = new ImportSession(importer.source, options);
  importer.read(session, document, options);
  return session.finish() as ImportResult<ImportSource>;
}

function recognise(document: unknown): readonly KnownImporter[] {
  return [...IMPORTERS.values()].filter((importer) => importer.looksLike(document));
}

function isOpenApi(document: unknown): boolean {
  return textIn(document, "openapi") !== undefined || textIn(document, "swagger") !== undefined;
}
