/** Google Gemini and Vertex AI: function declarations with JSON Schema, or with the typed schema. */

import { clip, defined, isObject, type JsonValue } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import { isTypedSchema, readTypedSchema } from "../transform/older_dialects.ts";

// Tools

/** A function, described with JSON Schema. */
export interface GeminiFunction {
  name: string;
  description: string;
  parametersJsonSchema: kit.WireSchema;
  responseJsonSchema?: unknown;
}

/** Gemini's typed schema. Lengths are 64-bit integers, which are texts in JSON. */
export interface GeminiSchema {
  type?: "STRING" | "NUMBER" | "INTEGER" | "BOOLEAN" | "ARRAY" | "OBJECT";
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

/** The settings of a request, which Google's client receives in `config`. */
export interface GeminiRequest {
  toolConfig?: {
    functionCallingConfig: { mode: "AUTO" | "NONE" | "ANY"; allowedFunctionNames?: string[] };
  };
}

const CALL: kit.CallFields = { id: "id", name: "name", input: "args" };

const readContent = kit.callReader({
  title: "a Gemini response",
  messages: ["candidates/0/content", "content"],
  lists: ["parts"],
  // A blocked prompt, a live session's event, and a chunk with token counts have no content.
  marks: ["promptFeedback", "usageMetadata", "serverContent", "finishReason", "role"],
  mayBeEmpty: true,
  isCall: (part) =>
    // An entry of the SDK's list `functionCalls` is a call, without a part around the call.
    kit.isSet(part, "functionCall") ||
    (typeof part["name"] === "string" && !kit.isSet(part, "functionResponse")),
  call: (part, at, shape) =>
    kit.isSet(part, "functionCall")
      ? callOf(shape.record(part["functionCall"], `${at}/functionCall`))
      : callOf(part),
});

/** Reads a response, a part of a response, or the `toolCall` event of a live session. */
function read(response: unknown): readonly kit.WireCall[] {
  const live = kit.listIn(kit.member(response, "toolCall"), "functionCalls");
  return live === undefined
    ? readContent(response)
    : live.map((call) => isObject(call) ? callOf(call) : kit.noCall(call));
}

function callOf(raw: kit.JsonRecord): kit.WireCall {
  const parts = kit.isSet(raw, "partialArgs") || raw["willContinue"] === true;
  return {
    ...kit.callFrom(CALL, raw),
    ...(parts ? { refusal: "its arguments are streamed in parts, which is not supported" } : {}),
  };
}

/** A file: its bytes in base64. */
export interface GeminiInlineData {
  inlineData: { mimeType: string; data: string };
}

function responseOf(
  { value, text, blocks }: kit.Answer & { readonly ok: true },
): Pick<GeminiFunctionResponse["functionResponse"], "response" | "parts"> {
  const isText = blocks !== undefined && (blocks.hasText || !blocks.hasValue) ||
    hasReference(value);
  const parts = blocks?.parts?.filter((part) => part !== undefined) as GeminiInlineData[];
  return { response: { output: isText ? text : value }, ...(parts === undefined ? {} : { parts }) };
}

/** The part that answers one call. */
export interface GeminiFunctionResponse {
  functionResponse: {
    /** The id of the call, if the call had an id. */
    id?: string;
    name: string;
    response: { output: JsonValue } | { error: string };
    /** The images and files of the result. */
    parts?: GeminiInlineData[];
  };
}

/** Returns true for a value with `$ref`, which Gemini rejects as a reference to an unknown part. */
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

/** The known fields. The field of a schema has three possible names. */
const KNOWN: readonly string[] = ["parameters", "response"].flatMap((field) => [
  field,
  `${field}JsonSchema`,
  `${field}_json_schema`,
]).concat("behavior");

const DECLARATIONS = ["functionDeclarations", "function_declarations"] as const;

function entries(document: unknown, session?: kit.ImportSession): readonly kit.Entry[] {
  return kit.entriesOf(document, ["tools", ...DECLARATIONS], ["config"], session);
}

function declarationsIn(entry: unknown): [string, readonly unknown[]] | undefined {
  for (const key of DECLARATIONS) {
    const list = kit.listIn(entry, key);
    if (list !== undefined) return [key, list];
  }
  return undefined;
}

/** The maximum number of entries that are inspected to detect a document. */
const MAX_ENTRIES = 100;

function readDeclaration(
  session: kit.ImportSession,
  tool: kit.JsonRecord,
  path: string,
  namespace: string | undefined,
): void {
  const { behavior } = tool;
  const fields: kit.ToolFields = {
    parameters: (imported) => schemaOf(session, imported, tool, "parameters"),
    returns: (imported) => schemaOf(session, imported, tool, "response"),
    others: KNOWN,
  };
  kit.readTool(session, tool, { path, namespace }, fields, ({ provider }) => {
    if (behavior === "NON_BLOCKING") provider.async = true;
    else if (behavior === "BLOCKING") provider.async = false;
  });
}

/** Returns the JSON Schema of a field. A typed schema is translated. */
function schemaOf(
  session: kit.ImportSession,
  imported: kit.ImportedTool,
  tool: kit.JsonRecord,
  field: "parameters" | "response",
): kit.FoundSchema {
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

type GeminiTarget<Id extends string, Declaration> = kit.Target<
  Id,
  Declaration,
  { functionDeclarations: Declaration[] }[],
  GeminiFunctionResponse,
  { role: "user"; parts: GeminiFunctionResponse[] },
  GeminiRequest
>;

/** Gemini, with JSON Schema. */
export const GEMINI: GeminiTarget<"gemini", GeminiFunction> = /* @__PURE__ */ kit.makeTarget({
  id: "gemini",
  title: "Gemini API, parametersJsonSchema",
  source: "@google/genai 3.1.0, generativelanguage protos 4.1.0, API errors; 2026-11-20",
  // The protos and the API's errors allow 64 characters; comments of the SDK allow 128.
  names: { also: ".-", max: 64, separator: ".", letterFirst: true },
  features: ["returns"],
  extra: { source: "gemini" },
  input: kit.GEMINI_RULES,
  output: {
    keywords: Object.freeze({
      ...kit.GEMINI_RULES,
      "root composition": kit.ADVISORY,
      "map": kit.ADVISORY,
      "open object": kit.ADVISORY,
    }),
    root: "any",
  },
  limits: [{ name: "maxTools", value: 512 }],
  wire: ({ extra, name, description, parameters, returns }) => ({
    ...extra,
    name,
    description,
    parametersJsonSchema: parameters,
    ...defined({ responseJsonSchema: returns }),
  }),
  // Gemini rejects an entry without a function.
  assemble: (tools) =>
    tools.length === 0 ? [] : [{ functionDeclarations: tools.map(({ wire }) => wire) }],
  choose({ toolChoice, parallel }, lose) {
    kit.loseParallel(parallel, lose);
    if (toolChoice === undefined) return {};
    const mode = toolChoice === "auto" ? "AUTO" : toolChoice === "none" ? "NONE" : "ANY";
    const allowedFunctionNames = typeof toolChoice === "object" ? [toolChoice.name] : undefined;
    return {
      toolConfig: { functionCallingConfig: { mode, ...defined({ allowedFunctionNames }) } },
    };
  },
  calls: {
    read,
    write: (call, answer) => ({
      functionResponse: {
        ...defined({ id: kit.textOf(kit.member(call.raw, "id")) }),
        name: call.wireName,
        ...(answer.ok ? responseOf(answer) : { response: { error: answer.text } }),
      },
    }),
    gather: (parts) => [{ role: "user", parts: [...parts] }],
    // Texts are in `response`, so they are not parts. Gemini 3 accepts files of these types.
    media: {
      text: () => undefined,
      file: ({ mimeType, data }) =>
        kit.extensionIn(["png", "jpeg", "webp", "pdf"], mimeType) &&
        { inlineData: { mimeType, data } },
    },
    stream: kit.streamResponses(read, ["candidates", "toolCall"]),
  },
});

/** The Gemini API with the typed `parameters`, for older models and gateways. */
export const GEMINI_TYPED: GeminiTarget<"gemini.typed", GeminiTypedFunction> = /* @__PURE__ */ kit
  .makeTarget({
    ...GEMINI,
    id: "gemini.typed",
    title: "Gemini API, typed parameters",
    source: "generativelanguage protos 4.1.0, API errors; 2026-11-20",
    // The documented rule for property keys in the typed schema.
    keys: { also: "", max: 64, separator: "_", letterFirst: true },
    input: kit.GEMINI_TYPED_RULES,
    output: { keywords: kit.GEMINI_TYPED_RULES, root: "any" },
    typed: true,
    wire: ({ extra, name, description, parameters, returns }) => ({
      ...extra,
      name,
      description,
      // The passes leave only keywords that the type has.
      parameters: parameters as object as GeminiSchema,
      ...defined({ response: typeof returns === "boolean" ? {} : returns as GeminiSchema }),
    }),
    // The cast is safe, because `assemble` does not read the declarations.
    assemble: GEMINI.assemble as never,
  });

/** Gemini on Vertex AI. */
export const VERTEX: GeminiTarget<"vertex", GeminiFunction> = /* @__PURE__ */ kit.makeTarget({
  ...GEMINI,
  id: "vertex",
  title: "Vertex AI, parametersJsonSchema",
  source: "@google/genai 3.1.0, aiplatform protos 7.4.0; 2026-11-20",
  limits: [{ name: "maxTools", value: 512 }, { name: "maxDepth", value: 32, uncertain: true }],
});

/** Reads the tools of a request to Gemini. */
export const geminiImporter: kit.Importer<"gemini"> = {
  source: "gemini",
  detects: (document) =>
    declarationsIn(document) !== undefined ||
    entries(document).slice(0, MAX_ENTRIES).some(({ value }) =>
      declarationsIn(value) !== undefined ||
      kit.member(value, "parametersJsonSchema") !== undefined ||
      (kit.member(value, "type") === undefined && isTypedSchema(kit.member(value, "parameters")))
    ),
  read(session, document, options) {
    const declarations = entries(document, session).flatMap((entry) => {
      const [key = "", list = []] = declarationsIn(entry.value) ?? [];
      const inside = list.map((value, at) => ({ value, path: `${entry.path}/${key}/${at}` }));
      return key === "" ? entry : inside;
    });
    kit.readEach(session, declarations, (tool, path) => {
      readDeclaration(session, tool, path, options.namespace);
    });
  },
};
