/**
 * Google Gemini and Vertex AI: function declarations with JSON Schema, or with the typed schema.
 *
 * @module
 */

import { clip, defined, isObject, type JsonSchema, type JsonValue } from "../../tool/mod.ts";
import type { Answer, MediaFormat, WireCall } from "../call_format.ts";
import {
  type CallFields,
  callFrom,
  callReader,
  given,
  noCall,
  streamResponses,
  textOf,
} from "../wire.ts";
import {
  type Chooses,
  loseParallel,
  type LoseSetting,
  type WireSettings,
} from "../export_options.ts";
import {
  entriesOf,
  type FoundSchema,
  type ImportedTool,
  type Importer,
  type ImportOptions,
  type ImportSession,
  type JsonRecord,
  listIn,
  member,
  readEach,
  readTool,
  type ToolFields,
} from "../importer_kit.ts";
import { ADVISORY, GEMINI_RULES, GEMINI_TYPED_RULES } from "../form_rules.ts";
import type { NameRule } from "../../select/mod.ts";
import {
  features,
  makeTarget,
  type OutputRule,
  type Provider,
  type Target,
  type ToolView,
} from "../target.ts";
import { isTypedSchema, readTypedSchema } from "../transform/older_dialects.ts";

// Tools

/** A function, described with JSON Schema. */
export interface GeminiFunction {
  name: string;
  description: string;
  parametersJsonSchema: { [keyword: string]: unknown };
  responseJsonSchema?: unknown;
}

/** The kinds of value in a typed schema. */
export type GeminiType = "STRING" | "NUMBER" | "INTEGER" | "BOOLEAN" | "ARRAY" | "OBJECT";

/** Gemini's typed schema, with all keys that it has. Lengths are 64-bit, and so they are texts. */
export interface GeminiSchema {
  type?: GeminiType;
  format?: string;
  title?: string;
  description?: string;
  nullable?: boolean;
  enum?: string[];
  items?: GeminiSchema;
  minItems?: string;
  maxItems?: string;
  properties?: { [key: string]: GeminiSchema };
  required?: string[];
  minProperties?: string;
  maxProperties?: string;
  minimum?: number;
  maximum?: number;
  minLength?: string;
  maxLength?: string;
  pattern?: string;
  example?: unknown;
  anyOf?: GeminiSchema[];
  propertyOrdering?: string[];
  default?: unknown;
}

/** A function, described with the typed schema. */
export interface GeminiTypedFunction {
  name: string;
  description: string;
  parameters: GeminiSchema;
  response?: GeminiSchema;
}

/** The entry of `tools` that holds all functions. */
export interface GeminiTools<Declaration> {
  functionDeclarations: Declaration[];
}

/** At most 64 characters by the protos and the API's errors; the SDK's comments say 128. */
const NAMES: NameRule = { also: ".-", max: 64, separator: ".", letterFirst: true };

/** The documented rule for property keys in the typed schema. */
const TYPED_KEYS: NameRule = { also: "", max: 64, separator: "_", letterFirst: true };

const OUTPUT: OutputRule = {
  keywords: Object.freeze({
    ...GEMINI_RULES,
    "root composition": ADVISORY,
    "map": ADVISORY,
    "open object": ADVISORY,
  }),
  root: "any",
};

function wire(view: ToolView): GeminiFunction {
  return {
    ...view.extra,
    name: view.name,
    description: view.description,
    parametersJsonSchema: view.parameters as { [keyword: string]: unknown },
    ...defined({ responseJsonSchema: view.returns }),
  };
}

function typedWire(view: ToolView): GeminiTypedFunction {
  return {
    ...view.extra,
    name: view.name,
    description: view.description,
    // The transforms leave only keys that the type has.
    parameters: view.parameters as GeminiSchema,
    ...(view.returns === undefined ? {} : { response: asTyped(view.returns) }),
  };
}

function asTyped(schema: JsonSchema): GeminiSchema {
  return typeof schema === "boolean" ? {} : schema as GeminiSchema;
}

function assemble<Declaration>(
  tools: readonly { readonly view: ToolView; readonly wire: Declaration }[],
): GeminiTools<Declaration>[] {
  // An entry without a function is rejected.
  return tools.length === 0 ? [] : [{ functionDeclarations: tools.map((tool) => tool.wire) }];
}

// Settings

/** The settings of a request; for Google's client in its `config`. */
export interface GeminiRequest {
  toolConfig?: {
    functionCallingConfig: { mode: "AUTO" | "NONE" | "ANY"; allowedFunctionNames?: string[] };
  };
}

function choose({ toolChoice, parallel }: WireSettings, lose: LoseSetting): GeminiRequest {
  loseParallel(parallel, lose);
  if (toolChoice === undefined) return {};
  const mode = toolChoice === "auto" ? "AUTO" : toolChoice === "none" ? "NONE" : "ANY";
  const named = typeof toolChoice === "object" ? { allowedFunctionNames: [toolChoice.name] } : {};
  return { toolConfig: { functionCallingConfig: { mode, ...named } } };
}

// Calls

const CALL: CallFields = { id: "id", name: "name", input: "args" };

const readContent = callReader({
  title: "a Gemini response",
  messages: ["candidates/0/content", "content"],
  lists: ["parts"],
  // A blocked prompt, a live session's event, and a chunk with token counts have no content.
  marks: ["promptFeedback", "usageMetadata", "serverContent", "finishReason", "role"],
  mayBeEmpty: true,
  isCall: (part) =>
    // A list of calls, as the SDK's `functionCalls` has it, has the call itself.
    given(part, "functionCall") ||
    (typeof part["name"] === "string" && !given(part, "functionResponse")),
  call: (part, at, shape) =>
    given(part, "functionCall")
      ? callOf(shape.record(part["functionCall"], `${at}/functionCall`))
      : callOf(part),
});

/** Reads a response, a candidate, a content, a list of parts, one part, or a live `toolCall`. */
function read(response: unknown): readonly WireCall[] {
  const live = listIn(member(response, "toolCall"), "functionCalls");
  return live === undefined
    ? readContent(response)
    : live.map((call) => isObject(call) ? callOf(call) : noCall(call));
}

function callOf(raw: JsonRecord): WireCall {
  const parts = given(raw, "partialArgs") || raw["willContinue"] === true;
  return {
    ...callFrom(CALL, raw),
    ...(parts ? { refusal: "its arguments are streamed in parts, which is not supported" } : {}),
  };
}

// Results

/** A file: its bytes in base64. */
export interface GeminiInlineData {
  inlineData: { mimeType: string; data: string };
}

/** The files that Gemini 3 takes in a response. */
const FILES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "application/pdf",
]);

/** Texts are in the response itself, and files are in `parts`. */
const MEDIA: MediaFormat<GeminiInlineData | undefined> = {
  text: () => undefined,
  file: ({ mimeType, data }) =>
    FILES.has(mimeType) ? { inlineData: { mimeType, data } } : undefined,
};

/** The response to a successful call, and its files. */
function responseOf(
  { value, text, blocks }: Answer & { readonly ok: true },
): Pick<GeminiFunctionResponse["functionResponse"], "response" | "parts"> {
  const isText = blocks !== undefined && (blocks.hasText || !blocks.hasValue) ||
    hasReference(value);
  const parts = blocks?.parts?.filter((part) => part !== undefined) as GeminiInlineData[];
  return { response: { output: isText ? text : value }, ...(parts === undefined ? {} : { parts }) };
}

/** The part that answers one call. */
export interface GeminiFunctionResponse {
  functionResponse: {
    /** The id of the call, if it had one. */
    id?: string;
    name: string;
    response: { output: JsonValue } | { error: string };
    /** The images and files of the result. */
    parts?: GeminiInlineData[];
  };
}

/** The content with the answers to all calls of a response. */
export interface GeminiToolContent {
  role: "user";
  parts: GeminiFunctionResponse[];
}

/**
 * Gemini reads `$ref` anywhere in a response as a reference to a part, and rejects the request.
 */
function hasReference(value: JsonValue): boolean {
  const open: JsonValue[] = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (typeof at !== "object" || at === null) continue;
    if (Object.hasOwn(at, "$ref")) return true;
    for (const inner of Object.values(at)) open.push(inner);
  }
  return false;
}

// Import

/** The fields that are read, each schema in one of three. */
const KNOWN: readonly string[] = ["parameters", "response"].flatMap((field) => [
  field,
  `${field}JsonSchema`,
  `${field}_json_schema`,
]).concat("behavior");

/** A list of declarations is in an entry of `tools`. */
const DECLARATIONS = ["functionDeclarations", "function_declarations"] as const;

function entries(document: unknown, session?: ImportSession): ReturnType<typeof entriesOf> {
  return entriesOf(document, ["tools", ...DECLARATIONS], ["config"], session);
}

function declarationsIn(entry: unknown): [string, readonly unknown[]] | undefined {
  for (const key of DECLARATIONS) {
    const list = listIn(entry, key);
    if (list !== undefined) return [key, list];
  }
  return undefined;
}

/** The maximum number of entries that are inspected to detect a document. */
const MAX_ENTRIES = 100;

function readDeclaration(
  session: ImportSession,
  tool: JsonRecord,
  path: string,
  options: ImportOptions,
): void {
  const { behavior } = tool;
  const fields: ToolFields = {
    parameters: (imported) => schemaOf(session, imported, tool, "parameters"),
    returns: (imported) => schemaOf(session, imported, tool, "response"),
    others: KNOWN,
  };
  readTool(session, tool, { path, namespace: options.namespace }, fields, ({ provider }) => {
    if (behavior === "NON_BLOCKING") provider.async = true;
    else if (behavior === "BLOCKING") provider.async = false;
  });
}

/** The JSON Schema of a field, translated from a typed schema if it is one. */
function schemaOf(
  session: ImportSession,
  imported: ImportedTool,
  tool: JsonRecord,
  field: "parameters" | "response",
): FoundSchema {
  for (const key of [`${field}JsonSchema`, `${field}_json_schema`]) {
    if (tool[key] !== undefined) return { schema: tool[key], path: `${imported.path}/${key}` };
  }
  const path = `${imported.path}/${field}`;
  const schema = tool[field];
  if (!isObject(schema) || !isTypedSchema(schema)) return { schema, path };
  return {
    schema: readTypedSchema(schema, (at, keyword) => {
      const of = `"${clip(keyword)}" of "${clip(imported.sourceName)}"`;
      session.warn(imported, path + at, keyword, `${of} is not a number, and is omitted`);
    }),
    path,
  };
}

// The provider

type GeminiTarget<Id extends string, Declaration> =
  & Target<
    Id,
    Declaration,
    GeminiTools<Declaration>[],
    GeminiFunctionResponse,
    GeminiToolContent
  >
  & Chooses<typeof choose>;

const GEMINI: GeminiTarget<"gemini", GeminiFunction> = makeTarget({
  id: "gemini",
  choose,
  title: "Gemini API, parametersJsonSchema",
  source: "@google/genai 3.1.0, generativelanguage protos 4.1.0, API errors; 2026-11-20",
  names: NAMES,
  features: features(["returns"]),
  extra: { source: "gemini" },
  input: GEMINI_RULES,
  output: OUTPUT,
  limits: [{ name: "maxTools", value: 512 }],
  wire,
  assemble,
  calls: {
    read,
    write: (call, answer) => ({
      functionResponse: {
        ...defined({ id: textOf(member(call.raw, "id")) }),
        name: call.wireName,
        ...(answer.ok ? responseOf(answer) : { response: { error: answer.text } }),
      },
    }),
    gather: (parts) => [{ role: "user", parts: [...parts] }],
    media: MEDIA,
    stream: streamResponses(read, ["candidates", "toolCall"]),
  },
});

/** The same with `parameters`, which older models and gateways want. */
const GEMINI_TYPED: GeminiTarget<"gemini.typed", GeminiTypedFunction> = makeTarget({
  ...GEMINI,
  id: "gemini.typed",
  title: "Gemini API, typed parameters",
  source: "generativelanguage protos 4.1.0, API errors; 2026-11-20",
  keys: TYPED_KEYS,
  input: GEMINI_TYPED_RULES,
  output: { keywords: GEMINI_TYPED_RULES, root: "any" },
  typed: true,
  wire: typedWire,
  assemble,
});

const VERTEX: GeminiTarget<"vertex", GeminiFunction> = makeTarget({
  ...GEMINI,
  id: "vertex",
  title: "Vertex AI, parametersJsonSchema",
  source: "@google/genai 3.1.0, aiplatform protos 7.4.0; 2026-11-20",
  limits: [
    { name: "maxTools", value: 512 },
    { name: "maxDepth", value: 32, uncertain: true },
  ],
});

/** Google's targets and importer. */
export const gemini: Provider<
  typeof GEMINI | typeof GEMINI_TYPED | typeof VERTEX,
  Importer<"gemini">
> = {
  targets: [GEMINI, GEMINI_TYPED, VERTEX],
  importer: {
    source: "gemini",
    looksLike: (document) =>
      declarationsIn(document) !== undefined ||
      entries(document).slice(0, MAX_ENTRIES).some(({ value }) =>
        declarationsIn(value) !== undefined ||
        member(value, "parametersJsonSchema") !== undefined ||
        (member(value, "type") === undefined && isTypedSchema(member(value, "parameters")))
      ),
    read(session, document, options) {
      const declarations = entries(document, session).flatMap((entry) => {
        const [key = "", list = []] = declarationsIn(entry.value) ?? [];
        const inside = list.map((value, at) => ({ value, path: `${entry.path}/${key}/${at}` }));
        return key === "" ? entry : inside;
      });
      readEach(session, declarations, (tool, path) => {
        readDeclaration(session, tool, path, options);
      });
    },
  },
};
