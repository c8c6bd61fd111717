/**
 * OpenAPI 3.1: a document with one operation per tool.
 *
 * @module
 */

import { type JsonSchema, setOwn } from "../../tool/mod.ts";
import type { NameRule } from "../names.ts";
import type { KeywordTable, Profile, ToolView } from "../profile.ts";
import { rebaseReferences } from "../transform/references.ts";
import { ADVISORY, ENFORCED, every, features, REJECTED, table } from "./tables.ts";

/** A media type with its schema. */
export interface OpenApiContent {
  "application/json": {
    schema: { [keyword: string]: unknown } | boolean;
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

/** A document. */
export interface OpenApiDocument {
  openapi: "3.1.1";
  info: { title: string; version: string };
  paths: { [path: string]: { post: OpenApiOperation } };
  components: { schemas: { [name: string]: { [keyword: string]: unknown } | boolean } };
}

/** One operation, where it stands, and the schemas that it refers to. */
export interface OpenApiPart {
  readonly path: string;
  readonly operation: OpenApiOperation;
  readonly schemas: { readonly [name: string]: { [keyword: string]: unknown } | boolean };
}

/** Names of components allow no more than this, and an operation's id names its components. */
const NAMES: NameRule = { also: ".-", max: 128, separator: "." };

/** A Schema Object is a schema of 2020-12. */
const KEYWORDS: KeywordTable = table(
  every(ENFORCED),
  [ADVISORY, ["title", "description", "default", "examples", "example", "usage notes", "unknown"]],
  [REJECTED, ["$ref external"]],
);

function component(name: string, schema: JsonSchema): { [keyword: string]: unknown } | boolean {
  // References of the schema lead into the document from now on.
  return rebaseReferences(schema, ["components", "schemas", name]) as
    | { [keyword: string]: unknown }
    | boolean;
}

function wire(view: ToolView): OpenApiPart {
  const { tool, hints, returns } = view;
  const input = `${view.name}.parameters`;
  const output = `${view.name}.returns`;
  const { provider: _hints, ...meta } = tool.meta ?? {};
  const examples: Record<string, { summary?: string; value: unknown }> = {};
  view.examples.forEach(({ input: value, description: summary }, index) => {
    examples[`example${index + 1}`] = { ...(summary === undefined ? {} : { summary }), value };
  });
  const template = view.options.path ?? "/tools/{id}/execute";
  return {
    path: template.replaceAll("{id}", encodeURIComponent(tool.id).replaceAll("%3A", ":")),
    operation: {
      operationId: view.name,
      ...(tool.title === undefined ? {} : { summary: tool.title }),
      description: view.description,
      ...(tool.namespace === undefined ? {} : { tags: [tool.namespace] }),
      ...(tool.deprecated === false ? {} : { deprecated: true as const }),
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

/** A document; `info` is for its owner to fill in. */
export const OPENAPI_3_1: Profile<OpenApiPart, OpenApiDocument> = {
  id: "openapi@3.1",
  title: "OpenAPI 3.1",
  source: "OpenAPI Specification 3.1.1; 2026-11-20",
  names: NAMES,
  features: features([
    "title",
    "namespace",
    "returns",
    "examples",
    "annotations",
    "deprecated",
    "meta",
    "strict",
    "deferLoading",
    "allowedCallers",
    "async",
    "cacheControl",
    "eagerInputStreaming",
    "taskSupport",
  ]),
  extra: "all",
  input: KEYWORDS,
  output: { keywords: KEYWORDS, root: "any" },
  limits: [],
  wire,
  assemble: (tools) => {
    const paths: OpenApiDocument["paths"] = {};
    const schemas: OpenApiDocument["components"]["schemas"] = {};
    for (const { wire } of tools) {
      setOwn(paths, wire.path, { post: wire.operation });
      for (const [name, schema] of Object.entries(wire.schemas)) setOwn(schemas, name, schema);
    }
    return {
      openapi: "3.1.1",
      info: { title: "Tools", version: "1.0.0" },
      paths,
      components: { schemas },
    };
  },
};
