/**
 * Gemini and Vertex: function declarations, with the typed schema or with JSON Schema.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { beginDraft, keepExtra } from "./draft_fields.ts";
import { entriesOf } from "./entries.ts";
import { isMembers, listIn, member, type Members } from "./fields.ts";
import { isTypedSchema, readTypedSchema } from "./gemini_schema.ts";
import { readParameters, readReturns } from "./input_schema.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";
import type { ImportOptions } from "./types.ts";

/** The fields of a declaration that plue has words for. */
const KNOWN: ReadonlySet<string> = new Set([
  "name",
  "description",
  "parameters",
  "parametersJsonSchema",
  "parameters_json_schema",
  "response",
  "responseJsonSchema",
  "response_json_schema",
  "behavior",
]);

/** A list of declarations is in an entry of `tools`. */
const DECLARATIONS = ["functionDeclarations", "function_declarations"] as const;

function entries(document: unknown, intake?: Intake): ReturnType<typeof entriesOf> {
  return entriesOf(document, ["tools", ...DECLARATIONS], ["config"], intake);
}

function declarationsIn(entry: unknown): [string, readonly unknown[]] | undefined {
  for (const key of DECLARATIONS) {
    const list = listIn(entry, key);
    if (list !== undefined) return [key, list];
  }
  return undefined;
}

/** How many entries are looked at to recognise a document. */
const MAX_LOOKED_AT = 100;

/** Whether a document looks like Gemini's. */
export function looksLikeGemini(document: unknown): boolean {
  return declarationsIn(document) !== undefined ||
    entries(document).slice(0, MAX_LOOKED_AT).some(({ value }) =>
      declarationsIn(value) !== undefined || member(value, "parametersJsonSchema") !== undefined ||
      (member(value, "type") === undefined && isTypedSchema(member(value, "parameters")))
    );
}

/** Reads the tools of a document. */
export function readGemini(intake: Intake, document: unknown, options: ImportOptions): void {
  for (const { value, path } of entries(document, intake)) {
    const [key, declarations] = declarationsIn(value) ?? ["", [value]];
    for (const [index, declaration] of declarations.entries()) {
      const at = key === "" ? path : `${path}/${key}/${index}`;
      if (!intake.count(at)) return;
      const tool = intake.copy(declaration, at);
      if (tool !== undefined) readDeclaration(intake, tool, at, options);
    }
  }
}

function readDeclaration(
  intake: Intake,
  tool: Members,
  path: string,
  options: ImportOptions,
): void {
  const draft = beginDraft(intake, tool, path, options.namespace);
  if (draft === undefined) return;
  const input = schemaOf(intake, draft, tool, "parameters");
  draft.parameters = readParameters(intake, draft, input.schema, input.path);
  if (draft.parameters === undefined) return;
  const output = schemaOf(intake, draft, tool, "response");
  draft.returns = readReturns(intake, draft, output.schema, output.path);
  const { behavior } = tool;
  if (behavior === "NON_BLOCKING") draft.provider.async = true;
  else if (behavior === "BLOCKING") draft.provider.async = false;
  keepExtra(draft, tool, KNOWN);
  intake.add(draft);
}

/** The JSON Schema of a field: given as it is, or translated from the typed schema. */
function schemaOf(
  intake: Intake,
  draft: Draft,
  tool: Members,
  field: "parameters" | "response",
): { readonly schema: unknown; readonly path: string } {
  for (const key of [`${field}JsonSchema`, `${field}_json_schema`]) {
    if (tool[key] !== undefined) return { schema: tool[key], path: `${draft.path}/${key}` };
  }
  const path = `${draft.path}/${field}`;
  const schema = tool[field];
  if (!isMembers(schema) || !isTypedSchema(schema)) return { schema, path };
  return {
    schema: readTypedSchema(schema, (at, keyword) => {
      intake.warn(
        draft,
        path + at,
        keyword,
        `"${clip(keyword)}" of "${clip(draft.sourceName)}" is no number, and is left out`,
      );
    }),
    path,
  };
}
