/**
 * Tools that were written down elsewhere, as plue's.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { looksLikeAnthropic, readAnthropic } from "./anthropic.ts";
import { looksLikeBedrock, readBedrock } from "./bedrock.ts";
import { looksLikeGemini, readGemini } from "./gemini.ts";
import { Intake } from "./intake.ts";
import { looksLikeMcp, readMcp } from "./mcp.ts";
import { looksLikeOpenAi, readOpenAi } from "./openai.ts";
import { looksLikeOpenApi, readOpenApi } from "./openapi/openapi.ts";
import type { ImportOptionsOf, ImportResult, ImportSource } from "./types.ts";

/** How one source is recognised and read. */
interface Importer<Source extends ImportSource> {
  looksLike(document: unknown): boolean;
  read(intake: Intake, document: unknown, options: ImportOptionsOf[Source]): void;
}

const IMPORTERS: { readonly [Source in ImportSource]: Importer<Source> } = {
  mcp: { looksLike: looksLikeMcp, read: readMcp },
  openapi: { looksLike: looksLikeOpenApi, read: readOpenApi },
  openai: { looksLike: looksLikeOpenAi, read: readOpenAi },
  anthropic: { looksLike: looksLikeAnthropic, read: readAnthropic },
  gemini: { looksLike: looksLikeGemini, read: readGemini },
  bedrock: { looksLike: looksLikeBedrock, read: readBedrock },
};

/** The sources that {@linkcode importTools} reads. */
export const IMPORT_SOURCES: readonly ImportSource[] = Object.freeze(
  Object.keys(IMPORTERS) as ImportSource[],
);

/**
 * Makes tools of a document: a list of an MCP server, an OpenAPI document, or the tools of a
 * request to OpenAI, Anthropic, Gemini or Bedrock.
 *
 * The document need not be trusted. It is bounded, nothing is fetched to read it, and what is wrong
 * in it is in the answer: one bad tool does not spoil the others. What a document says of its tools'
 * behaviour is only its word; give {@linkcode ImportOptions.risk} where that is not enough.
 *
 * What was not there is kept as not there, in the tool's `meta.provider`, so that an export to
 * where a tool came from says what was said there.
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
 * @example An API
 * ```ts
 * import assert from "node:assert/strict";
 * import { importTools } from "@plue/tools/formats";
 *
 * const { tools } = importTools("openapi", {
 *   openapi: "3.1.0",
 *   servers: [{ url: "https://api.example.com" }],
 *   paths: {
 *     "/pets/{id}": {
 *       get: {
 *         operationId: "getPet",
 *         parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
 *         responses: { "200": { description: "The pet." } },
 *       },
 *     },
 *   },
 * }, { fetch: globalThis.fetch });
 *
 * assert.deepEqual(tools[0]?.parameters["required"], ["id"]);
 * ```
 *
 * @param source Whose way of writing the document follows; `auto` finds out.
 * @param document The document, as `JSON.parse` gives it.
 * @param options Namespace, risk, tags, how calls run, limits; and the source's own.
 * @returns The tools, what to know about them, and what was rejected and why.
 * @throws {TypeError | RangeError} If the source or an option is wrong. Never for the document.
 */
export function importTools<Source extends ImportSource | "auto">(
  source: Source,
  document: unknown,
  options: ImportOptionsOf[Source] = {},
): ImportResult {
  if (source !== "auto" && !(IMPORT_SOURCES as readonly string[]).includes(source)) {
    throw new TypeError(
      `Cannot import tools: the source must be auto, ${IMPORT_SOURCES.join(", ")}, not "${
        clip(String(source))
      }"`,
    );
  }
  const found: readonly ImportSource[] = source === "auto" ? recognise(document) : [source];
  const [only] = found;
  if (only === undefined || found.length > 1) {
    const intake = new Intake("mcp", options);
    intake.reject(
      undefined,
      "",
      "source",
      `Cannot tell what the document is: it looks like ${
        found.length === 0 ? "none of the sources" : found.join(" and ")
      }; name the source`,
    );
    return Object.freeze({ ...intake.finish(), source: undefined });
  }
  const intake = new Intake(only, options);
  // The options of `auto` are those of every source; else they are the source's own.
  (IMPORTERS[only] as Importer<ImportSource>).read(intake, document, options as never);
  return intake.finish();
}

/** The sources that a document looks like. */
function recognise(document: unknown): readonly ImportSource[] {
  return IMPORT_SOURCES.filter((source) => IMPORTERS[source].looksLike(document));
}
