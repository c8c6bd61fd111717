/** OpenAPI 3.1: a document with one operation per tool, and the requests and responses. */

import {
  attemptOr,
  defined,
  HTTP_STATUS,
  type JsonSchema,
  type JsonValue,
  setOwn,
} from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import { rebaseReferences } from "../transform/references.ts";

// Tools

/** A media type with its schema. */
export interface OpenApiContent {
  "application/json": {
    schema: kit.WireSchema | boolean;
    examples?: { [name: string]: { summary?: string; value: unknown } };
  };
}

/** The operation that calls one tool. */
export interface OpenApiOperation {
  operationId: string;
  summary?: string;
  description: string;
  tags?: string[];
  deprecated?: true;
  requestBody: { required: true; content: OpenApiContent };
  responses: {
    "200": { description: string; content?: OpenApiContent };
    default: { description: string };
  };
  "x-tool-annotations": { [hint: string]: unknown };
  "x-tool-hints"?: { [hint: string]: unknown };
  "x-tool-meta"?: { [key: string]: unknown };
}

/** An OpenAPI document with the operations of all tools. */
export interface OpenApiDocument {
  openapi: "3.1.1";
  info: { title: string; version: string };
  paths: { [path: string]: { post: OpenApiOperation } };
  components: { schemas: { [name: string]: kit.WireSchema | boolean } };
}

/** One operation, its path, and its schemas. */
export interface OpenApiPart {
  readonly path: string;
  readonly operation: OpenApiOperation;
  readonly schemas: { readonly [name: string]: kit.WireSchema | boolean };
}

const TEMPLATE = "/tools/{id}/execute";

/** A Schema Object of OpenAPI 3.1 is a schema of JSON Schema 2020-12. */
const KEYWORDS: kit.KeywordTable = Object.freeze({ ...kit.COPIED, "$ref external": kit.REJECTED });

function component(name: string, schema: JsonSchema): kit.WireSchema | boolean {
  // References inside the schema must start at the root of the document.
  return rebaseReferences(schema, ["components", "schemas", name]) as
    | kit.WireSchema
    | boolean;
}

function wire(view: kit.ToolView): OpenApiPart {
  const { tool, hints, returns } = view;
  const input = `${view.name}.parameters`;
  const output = `${view.name}.returns`;
  const { provider: _hints, ...meta } = tool.meta ?? {};
  const examples: Record<string, { summary?: string; value: unknown }> = {};
  view.examples.forEach(({ input: value, description: summary }, index) => {
    examples[`example${index + 1}`] = { ...defined({ summary }), value };
  });
  const { path: template = TEMPLATE } = view.options;
  return {
    path: template.replaceAll("{id}", encodeURIComponent(tool.id).replaceAll("%3A", ":")),
    operation: {
      operationId: view.name,
      ...defined({ summary: tool.title }),
      description: view.description,
      ...(tool.namespace === undefined ? {} : { tags: [tool.namespace] }),
      ...(tool.deprecated === false ? {} : { deprecated: true }),
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: { $ref: `#/components/schemas/${input}` },
            ...(view.examples.length === 0 ? {} : { examples }),
          },
        },
      },
      responses: {
        "200": {
          description: "The result.",
          ...(returns === undefined ? {} : {
            content: { "application/json": { schema: { $ref: `#/components/schemas/${output}` } } },
          }),
        },
        default: { description: "Why the call failed." },
      },
      "x-tool-annotations": { ...tool.annotations },
      ...(Object.keys(hints).length === 0 ? {} : { "x-tool-hints": { ...hints } }),
      ...(Object.keys(meta).length === 0 ? {} : { "x-tool-meta": meta }),
    },
    schemas: {
      [input]: component(input, view.parameters),
      ...(returns === undefined ? {} : { [output]: component(output, returns) }),
    },
  };
}

const SHAPE = new kit.Shape("an OpenAPI request");

function callOf(value: unknown, at: string): kit.WireCall {
  const raw = SHAPE.record(value, at, 'an object with "path" or "operationId"');
  const id = kit.textOf(raw["callId"]);
  const input = raw["body"];
  if (kit.isSet(raw, "operationId")) {
    return { id, name: SHAPE.text(raw["operationId"], `${at}/operationId`), input, raw };
  }
  const path = SHAPE.text(raw["path"], `${at}/path`);
  const toolId = idIn(path, raw, at);
  return { id, name: path, input, raw, ...(toolId === undefined ? {} : { toolId }) };
}

/** Returns the part of a path that replaces `{id}` in the template. */
function idIn(path: string, raw: kit.JsonRecord, at: string): string | undefined {
  const template = kit.isSet(raw, "template")
    ? SHAPE.text(raw["template"], `${at}/template`)
    : TEMPLATE;
  const [before = "", after = ""] = template.split("{id}");
  const query = path.indexOf("?");
  const plain = query === -1 ? path : path.slice(0, query);
  if (!plain.startsWith(before) || !plain.endsWith(after)) return undefined;
  const segment = plain.slice(before.length, plain.length - after.length);
  return attemptOr(undefined, () => decodeURIComponent(segment));
}

/** The response to a request. */
export interface OpenApiResponse {
  status: number;
  headers: { "content-type": "application/json" | "application/problem+json" };
  body: JsonValue;
}

/** An OpenAPI 3.1 document. */
export const OPENAPI_3_1: kit.Target<
  "openapi@3.1",
  OpenApiPart,
  OpenApiDocument,
  OpenApiResponse,
  OpenApiResponse
> = /* @__PURE__ */ kit.makeTarget({
  id: "openapi@3.1",
  title: "OpenAPI 3.1",
  source: "OpenAPI Specification 3.1.1; 2026-11-20",
  // The names of components contain the id of the operation.
  names: { also: ".-", max: 128, separator: "." },
  features: [
    ...["title", "namespace", "returns", "examples"] as const,
    ...["annotations", "deprecated", "meta", "strict"] as const,
    ...kit.HINT_FEATURES,
  ],
  extra: "all",
  input: KEYWORDS,
  output: { keywords: KEYWORDS, root: "any" },
  wire,
  assemble(tools) {
    const paths: OpenApiDocument["paths"] = {};
    const schemas: OpenApiDocument["components"]["schemas"] = {};
    for (const { wire } of tools) {
      setOwn(paths, wire.path, { post: wire.operation });
      for (const [name, schema] of Object.entries(wire.schemas)) setOwn(schemas, name, schema);
    }
    const info = { title: "Tools", version: "1.0.0" };
    return { openapi: "3.1.1", info, paths, components: { schemas } };
  },
  calls: {
    // Reads `{ path, body, template? }`, `{ operationId, body }`, or a list of such requests.
    read: (request) => SHAPE.each(request, callOf),
    write(_call, answer) {
      if (answer.ok) {
        const { blocks, value } = answer;
        const body = blocks === undefined || blocks.hasValue
          ? value
          : { content: blocks.content as unknown as JsonValue };
        return { status: 200, headers: { "content-type": "application/json" }, body };
      }
      const { code, message, issues, retryable, ran } = answer.error;
      const status = HTTP_STATUS[code];
      const body = {
        ...{ type: "about:blank", status, code, detail: message },
        ...defined({ issues: issues?.map((issue) => ({ ...issue })) }),
        retryable,
        ...defined({ ran }),
      };
      return { status, headers: { "content-type": "application/problem+json" }, body };
    },
  },
});
