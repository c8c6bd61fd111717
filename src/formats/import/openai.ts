/**
 * OpenAI and those who write tools as it does: Chat, the older `functions`, Responses with
 * namespaces, Realtime, Mistral.
 *
 * @module
 */

import { isToolName, pointerStep } from "../../tool/mod.ts";
import { flagIn, listIn, member, type Members, objectIn, quote, textIn } from "./fields.ts";
import { beginDraft, keepExtra, readSharedHints } from "./draft_fields.ts";
import { entriesOf } from "./entries.ts";
import { readParameters, readReturns } from "./input_schema.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";
import type { OpenAiImportOptions } from "./types.ts";
import { nullableToOptional } from "./unstrict.ts";

/** The fields of a function that plue has words for. */
const KNOWN: ReadonlySet<string> = new Set([
  "type",
  "function",
  "name",
  "description",
  "parameters",
  "strict",
  "output_schema",
  "defer_loading",
  "allowed_callers",
  "async",
]);

/** Where the lists of tools stand in requests, sessions, and by themselves. */
const LISTS = ["tools", "functions"] as const;

/** Whether a document looks like OpenAI's. */
export function looksLikeOpenAi(document: unknown): boolean {
  const [first] = entriesOf(document, LISTS, ["session"]);
  const type = member(first?.value, "type");
  return type === "function" || type === "namespace" ||
    (type === undefined && member(first?.value, "parameters") !== undefined);
}

/** Reads the tools of a document. */
export function readOpenAi(intake: Intake, document: unknown, options: OpenAiImportOptions): void {
  for (const { value, path } of entriesOf(document, LISTS, ["session"], intake)) {
    if (!intake.count(path)) return;
    // A namespace is taken apart first, so that one bad tool in it does not spoil the others.
    if (textIn(value, "type") === "namespace") readNamespace(intake, value, path, options);
    else readEntry(intake, value, path, options.namespace, undefined, options);
  }
}

function readNamespace(
  intake: Intake,
  namespace: unknown,
  path: string,
  options: OpenAiImportOptions,
): void {
  const name = textIn(namespace, "name");
  const inside = options.namespace === undefined ? name : `${options.namespace}.${name}`;
  const tools = listIn(namespace, "tools");
  if (name === undefined || !isToolName(inside) || tools === undefined) {
    intake.reject(
      name,
      path,
      "namespace",
      'Cannot import the namespace: it must have a list of "tools", and a "name" of letters, digits, "_", "." or "-"',
    );
    return;
  }
  const description = textIn(namespace, "description");
  for (const [index, entry] of tools.entries()) {
    const at = `${path}/tools/${index}`;
    if (index > 0 && !intake.count(at)) return;
    readEntry(intake, entry, at, inside, description, options);
  }
}

function readEntry(
  intake: Intake,
  entry: unknown,
  path: string,
  namespace: string | undefined,
  namespaceDescription: string | undefined,
  options: OpenAiImportOptions,
): void {
  const outer = intake.copy(entry, path);
  if (outer === undefined) return;
  const type = outer["type"] ?? "function";
  const inner = objectIn(outer, "function");
  const at = inner === undefined ? path : `${path}/function`;
  const tool = inner ?? outer;
  const name = textIn(tool, "name");
  if (type !== "function") {
    intake.reject(
      name,
      path,
      "type",
      `Cannot import a tool whose type is ${
        quote(type)
      }: only functions have a schema of their arguments`,
    );
    return;
  }
  const draft = beginDraft(intake, tool, path, namespace, at);
  if (draft === undefined) return;
  for (const field of inner === undefined ? [] : Object.keys(outer)) {
    if (field === "type" || field === "function") continue;
    intake.warn(
      draft,
      path + pointerStep(field),
      field,
      `${quote(field)} is not known here, and is left out`,
    );
  }
  const parameters = readParameters(intake, draft, tool["parameters"], `${at}/parameters`);
  if (parameters === undefined) return;
  draft.parameters = parameters;
  draft.returns = readReturns(intake, draft, tool["output_schema"], `${at}/output_schema`);
  readHints(draft, tool, namespaceDescription);
  const relaxed = flagIn(tool, "strict") === true && options.unstrict === true
    ? nullableToOptional(parameters)
    : undefined;
  if (relaxed !== undefined) {
    draft.parameters = relaxed.schema;
    draft.writeArguments = relaxed.putBack;
    draft.provider.unstrict = true;
  }
  keepExtra(draft, tool, KNOWN);
  if (draft.provider.extra !== undefined) {
    draft.provider.surface = inner !== undefined
      ? "chat"
      : path.startsWith("/session/")
      ? "realtime"
      : "responses";
  }
  intake.add(draft);
}

function readHints(draft: Draft, tool: Members, namespaceDescription: string | undefined): void {
  readSharedHints(draft, tool);
  const isAsync = flagIn(tool, "async");
  if (isAsync !== undefined) draft.provider.async = isAsync;
  if (namespaceDescription !== undefined) {
    draft.provider.namespaceDescription = namespaceDescription;
  }
}
