/**
 * Imports tools from the documents of other libraries and providers.
 *
 * @module
 */

import { clip } from "../tool/mod.ts";
import type { ImportOptions, ImportResult, PinnedImport, WithPins } from "./import_options.ts";
import { type Importer, ImportSession } from "./import_session.ts";
import { textIn } from "./wire.ts";
import * as providers from "./providers/index.ts";
import type { KnownProvider } from "./targets.ts";

type KnownImporter = NonNullable<KnownProvider["importer"]>;

type OptionsOf<Import> = Import extends Importer<string, infer Options> ? Options : never;

/** The intersection of the types of a union. */
type All<Union> = (Union extends unknown ? (value: Union) => void : never) extends
  (value: infer Every) => void ? Every
  : never;

/** What a document is: the provider or protocol whose form it has. */
export type ImportSource = KnownImporter["source"];

/** The options of each source; those of `auto` are the options of all sources. */
export type ImportOptionsOf =
  & { readonly [Import in KnownImporter as Import["source"]]: OptionsOf<Import> }
  & { readonly auto: All<OptionsOf<KnownImporter>> };

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
 * Imports tools as without `pins`, and holds back those that are not as they were when they were
 * approved.
 *
 * @returns A promise of the import, and of what is held back.
 */
export function importTools<Source extends ImportSource | "auto">(
  source: Source,
  document: unknown,
  options: WithPins<ImportOptionsOf[Source]>,
): Promise<PinnedImport<ImportSource>>;
/**
 * Makes tools from a document: a list of an MCP server, or the tools of a request to OpenAI,
 * Anthropic, Gemini or Bedrock. `importOpenApi` of `@plue/tools/openapi` reads OpenAPI documents.
 *
 * The document need not be trusted. Its size is bounded, and nothing is fetched to read it. A bad
 * tool is rejected with a reason, and the others are imported. What a document says about the
 * behaviour of its tools is not verified: give {@linkcode ImportOptions.risk} if that matters.
 *
 * The tool's `meta.provider` records which fields were absent, so that an export to the tool's
 * source gives back what was read.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { importTools } from "@plue/tools/formats";
 *
 * const { tools, rejected } = importTools("mcp", {
 *   tools: [
 *     {
 *       name: "get_issue",
 *       description: "Reads an issue.",
 *       inputSchema: { type: "object", properties: { number: { type: "integer" } } },
 *       annotations: { readOnlyHint: true },
 *     },
 *     { name: "broken", inputSchema: { type: "strng" } },
 *   ],
 * }, { namespace: "github" });
 *
 * assert.deepEqual(tools.map((tool) => [tool.id, tool.risk]), [["github:get_issue", "low"]]);
 * assert.equal(rejected[0]?.name, "broken");
 * ```
 *
 * @param source What the document is; `auto` recognises it.
 * @param document The document, as `JSON.parse` gives it.
 * @param options Namespace, risk, tags, how calls run, limits, and the options of the source.
 * @returns The tools, what to know about them, and what was rejected and why.
 * @throws {TypeError | RangeError} If the source or an option is wrong. Never for the document.
 */
export function importTools<Source extends ImportSource | "auto">(
  source: Source,
  document: unknown,
  options?: ImportOptionsOf[Source],
): ImportResult<ImportSource>;
export function importTools(
  source: ImportSource | "auto",
  document: unknown,
  options: ImportOptionsOf["auto"] | WithPins<ImportOptionsOf["auto"]> = {},
): ImportResult<ImportSource> | Promise<PinnedImport<ImportSource>> {
  const { pins, ...rest } = options;
  const { namespace = "" } = rest;
  const imported = readTools(source, document, rest);
  return pins === undefined ? imported : pins.check(imported, namespace);
}

function readTools(
  source: ImportSource | "auto",
  document: unknown,
  options: ImportOptionsOf["auto"],
): ImportResult<ImportSource> {
  const found = source === "auto" ? recognise(document) : [IMPORTERS.get(source)];
  const [importer] = found;
  if (source !== "auto" && importer === undefined) {
    throw new TypeError(
      `Cannot import tools: the source must be auto, ${IMPORT_SOURCES.join(", ")}, not "${
        clip(String(source))
      }"`,
    );
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
  // The options of a source are those of its importer, and `auto` has the options of all.
  (importer as Importer<ImportSource, ImportOptions>).read(session, document, options);
  return session.finish() as ImportResult<ImportSource>;
}

/** The importers of the sources that a document looks like. */
function recognise(document: unknown): readonly KnownImporter[] {
  return [...IMPORTERS.values()].filter((importer) => importer.looksLike(document));
}

function isOpenApi(document: unknown): boolean {
  return textIn(document, "openapi") !== undefined || textIn(document, "swagger") !== undefined;
}
