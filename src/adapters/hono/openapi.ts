/**
 * The service as an OpenAPI 3.1 document: one operation per tool that the caller sees, and the other
 * routes. The tools' schemas come from the export to `openapi@3.1`; what is around them here is what
 * this handler sends: arguments in an envelope, results with their call.
 *
 * @module
 */

import type {
  ExportResult,
  OpenApiContent,
  OpenApiDocument,
  OpenApiOperation,
} from "../../formats/mod.ts";
import { type Check, checkText } from "../../tool/mod.ts";
import { checkObject, checkTexts } from "./checks.ts";

/** What the document says besides the tools. */
export interface OpenApiOptions {
  /** @default {"Tools"} */
  readonly title?: string;
  /** The version of what is served. @default {"1.0.0"} */
  readonly version?: string;
  readonly description?: string;
  /** Where the routes are, as URLs. Absent: where the document is. */
  readonly servers?: readonly string[];
  /**
   * How callers show who they are, as OpenAPI's Security Scheme Objects by name. Any one will do.
   *
   * @default {a bearer token, if there is an `authorize`}
   */
  readonly securitySchemes?: Readonly<Record<string, unknown>>;
}

/** What they must be. */
export const OPENAPI_CHECKS: { readonly [Option in keyof OpenApiOptions]-?: Check } = {
  title: checkText,
  version: checkText,
  description: checkText,
  servers: checkTexts,
  securitySchemes: checkObject,
};

type Json = { readonly [key: string]: unknown };

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const content = (schema: unknown): Json => ({ "application/json": { schema } });
const response = (description: string, schema?: unknown): Json => ({
  description,
  ...(schema === undefined ? {} : { content: content(schema) }),
});
const path = (name: string, description: string): Json => ({
  name,
  in: "path",
  required: true,
  description,
  schema: { type: "string" },
});
const query = (
  name: string,
  description: string,
  schema: unknown = { type: "string" },
): Json => ({
  name,
  in: "query",
  description,
  schema,
});

const PROBLEM: Json = {
  description: "Why it did not work (RFC 9457).",
  content: { "application/problem+json": { schema: ref("Problem") } },
};

const ID: Json = {
  type: "string",
  minLength: 1,
  maxLength: 256,
  // No spaces at its ends, said without looking around: not every engine of patterns can.
  pattern: "^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$",
};
const FLAG: Json = { type: "string", enum: ["true", "false"] };

/** The schemas of what the routes themselves send. A tool's have a "." in their names. */
const SCHEMAS: Json = {
  Problem: {
    type: "object",
    properties: {
      type: { type: "string" },
      title: { type: "string" },
      status: { type: "integer" },
      code: { type: "string", description: "What went wrong, for programs." },
      detail: {
        type: "string",
        description: "What went wrong, and what would be right.",
      },
      issues: { type: "array", items: ref("Issue") },
      retryable: {
        type: "boolean",
        description: "Whether the same call may succeed later.",
      },
      callId: { type: "string" },
      durationMs: { type: "number" },
    },
    required: ["type", "title", "status", "code", "detail"],
  },
  Issue: {
    type: "object",
    properties: {
      path: { type: "string", description: "Where, as a JSON Pointer." },
      keyword: { type: "string" },
      expected: { type: "string" },
      message: { type: "string" },
    },
    required: ["path", "keyword", "expected", "message"],
  },
  Tool: {
    type: "object",
    properties: {
      id: { type: "string" },
      name: { type: "string" },
      namespace: { type: "string" },
      title: { type: "string" },
      description: { type: "string" },
      version: { type: "string" },
      parameters: { description: "JSON Schema of the arguments." },
      returns: { description: "JSON Schema of the result." },
      category: { type: "string" },
      risk: {
        type: "string",
        enum: ["safe", "low", "medium", "high", "critical"],
      },
      tags: { type: "array", items: { type: "string" } },
      annotations: { type: "object" },
      executable: { type: "boolean" },
    },
    required: [
      "id",
      "name",
      "description",
      "parameters",
      "risk",
      "tags",
      "executable",
    ],
  },
  Page: {
    type: "object",
    properties: {
      tools: { type: "array", items: ref("Tool") },
      nextCursor: { type: "string", description: "Absent on the last page." },
    },
    required: ["tools"],
  },
  Export: {
    type: "object",
    properties: {
      target: { type: "string" },
      tools: { description: "The tools in the target's shape." },
      names: { type: "array", items: { type: "object" }, description: "Which tool a name means." },
      rejected: { type: "array", items: { type: "object" } },
      warnings: { type: "array" },
      losses: { type: "array", items: { type: "object" } },
    },
    required: ["target", "tools", "names", "rejected", "warnings"],
  },
  Turn: {
    type: "object",
    properties: {
      target: { type: "string" },
      messages: { description: "What to send back, in the target's shape." },
      calls: {
        type: "array",
        items: {
          type: "object",
          properties: {
            callId: { type: "string" },
            name: {
              type: ["string", "null"],
              description: "The tool's id; null if there is none.",
            },
            wireName: { type: "string" },
            result: { type: "object" },
          },
          required: ["callId", "name", "wireName", "result"],
        },
      },
    },
    required: ["target", "messages", "calls"],
  },
};

/** The parameters that narrow the caller's tools. */
const FILTERS: readonly Json[] = [
  query("role", "Only what this role may use."),
  query("maxRisk", "Only what is no riskier.", {
    type: "string",
    enum: ["safe", "low", "medium", "high", "critical"],
  }),
  query("category", "Only these categories, separated by commas."),
  query(
    "tagsAny",
    "Only tools with one of these tags, separated by commas.",
  ),
  query(
    "tagsAll",
    "Only tools with all these tags, separated by commas.",
  ),
  query("namespace", "Only this namespace."),
  ...["hasWorkspace", "hasTerminal", "hasEditor", "hasGit", "readOnly"]
    .map((name) => query(name, "What there is to work with.", FLAG)),
];

/** The routes that are there whatever tools there are. */
const ROUTES: Json = {
  "/tools": {
    get: {
      operationId: "listTools",
      summary: "The caller's tools",
      parameters: [
        query("q", "Words to search for; the best match comes first."),
        query("limit", "How many at most.", {
          type: "integer",
          minimum: 1,
          maximum: 1000,
        }),
        query("cursor", "The nextCursor of the page before."),
        ...FILTERS,
        query("format", "The target to export to, such as a provider; an export is whole."),
        query("losses", "Whether an export says what the target cannot.", {
          type: "string",
          enum: ["0", "1"],
        }),
      ],
      responses: {
        "200": response("A page; or, with a format, an export.", {
          anyOf: [ref("Page"), ref("Export")],
        }),
        default: PROBLEM,
      },
    },
  },
  "/tools/{id}": {
    get: {
      operationId: "getTool",
      summary: "One of the caller's tools",
      parameters: [path("id", "The tool's id.")],
      responses: {
        "200": response("The tool.", ref("Tool")),
        default: PROBLEM,
      },
    },
  },
  "/tools/{id}/explain": {
    get: {
      operationId: "explainTool",
      summary: "Whether the caller sees a tool, and why not",
      parameters: [path("id", "The tool's id.")],
      responses: {
        "200": response("The explanation.", { type: "object" }),
        default: PROBLEM,
      },
    },
  },
  "/executions/{callId}/abort": {
    post: {
      operationId: "abortExecution",
      summary: "Aborts one of the caller's running calls",
      parameters: [path("callId", "The call's id.")],
      responses: {
        "202": response("The call is being aborted.", {
          type: "object",
          properties: {
            callId: { type: "string" },
            status: { const: "aborting" },
          },
          required: ["callId", "status"],
        }),
        default: PROBLEM,
      },
    },
  },
  "/dispatch/{target}": {
    post: {
      operationId: "dispatchTurn",
      summary: "Runs the calls in a provider's response",
      parameters: [
        path("target", "The target that the model's tools were exported to."),
        ...FILTERS,
      ],
      requestBody: {
        required: true,
        description: "The provider's response, as it came.",
        content: content({}),
      },
      responses: {
        "200": response("The messages to send back, and what came of each call.", ref("Turn")),
        default: PROBLEM,
      },
    },
  },
  "/events": {
    get: {
      operationId: "followTools",
      summary: "How the caller's tools change",
      responses: {
        "200": {
          description: 'Events "added", "removed" and "updated", each with the id of a tool.',
          content: { "text/event-stream": { schema: { type: "string" } } },
        },
        "204": { description: "The tools of this server do not change." },
        default: PROBLEM,
      },
    },
  },
  "/metrics": {
    get: {
      operationId: "getMetrics",
      summary: "What the calls of the caller's tools came to",
      responses: {
        "200": {
          description: "The metrics.",
          content: {
            "application/json": { schema: { type: "object" } },
            "text/plain": { schema: { type: "string" } },
            "application/openmetrics-text": { schema: { type: "string" } },
          },
        },
        default: PROBLEM,
      },
    },
  },
  "/healthz": {
    get: {
      operationId: "getHealth",
      summary: "Whether the server is up",
      security: [],
      responses: { "200": response("It is.", { type: "object" }) },
    },
  },
};

/** The ids of calls, which may come in the body or in headers. */
const CALL_FIELDS: Json = {
  callId: { ...ID, description: "Names the call, so that it can be aborted." },
  sessionId: {
    ...ID,
    description: "The conversation that the call belongs to.",
  },
  messageId: { ...ID, description: "The message that asked for the call." },
  idempotencyKey: {
    ...ID,
    description: "A later call with the same key gets this call's result.",
  },
};

/**
 * Writes the document.
 *
 * @param exported The caller's tools, exported to `openapi@3.1`.
 * @param isProtected Whether callers must show who they are.
 */
export function openApiDocument(
  exported: ExportResult<OpenApiDocument>,
  options: OpenApiOptions,
  isProtected: boolean,
): Json {
  const { title = "Tools", version = "1.0.0", description, servers } = options;
  const { tools, rejected } = exported;
  const securitySchemes = options.securitySchemes ??
    (isProtected ? { bearer: { type: "http", scheme: "bearer" } } : undefined);
  const paths = Object.fromEntries(
    Object.entries(tools.paths).map(([path, { post }]) => [
      path,
      { post: operationOf(post, tools.components.schemas) },
    ]),
  );
  return {
    openapi: "3.1.1",
    info: {
      title,
      version,
      ...(description === undefined ? {} : { description }),
    },
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    ...(servers === undefined ? {} : { servers: servers.map((url) => ({ url })) }),
    ...(securitySchemes === undefined ? {} : {
      security: Object.keys(securitySchemes).map((name) => ({ [name]: [] })),
    }),
    paths: { ...ROUTES, ...paths },
    components: {
      schemas: { ...SCHEMAS, ...tools.components.schemas },
      ...(securitySchemes === undefined ? {} : { securitySchemes }),
    },
    // A tool that cannot be said in OpenAPI is not left out in silence.
    ...(rejected.length === 0 ? {} : {
      "x-tools-left-out": rejected.map(({ tool, message }) => ({
        tool,
        message,
      })),
    }),
  };
}

/** The operation of a tool as this handler takes it. */
function operationOf(
  operation: OpenApiOperation,
  schemas: OpenApiDocument["components"]["schemas"],
): Json {
  const input = operation.requestBody.content["application/json"];
  const output = operation.responses["200"].content?.["application/json"];
  const mustHave = requiresArguments(input, schemas);
  return {
    ...operation,
    requestBody: {
      required: mustHave,
      content: {
        "application/json": {
          schema: {
            type: "object",
            properties: { arguments: input.schema, ...CALL_FIELDS },
            ...(mustHave ? { required: ["arguments"] } : {}),
            additionalProperties: false,
          },
          ...(input.examples === undefined ? {} : {
            examples: Object.fromEntries(
              Object.entries(input.examples).map((
                [name, { value, ...rest }],
              ) => [
                name,
                { ...rest, value: { arguments: value } },
              ]),
            ),
          }),
        },
      },
    },
    responses: {
      "200": {
        description: "The result; or, as an event stream, what happens and then the result.",
        content: {
          "application/json": {
            schema: {
              type: "object",
              properties: {
                callId: { type: "string" },
                ok: { const: true },
                content: output === undefined ? true : output.schema,
                durationMs: { type: "number" },
                truncated: { const: true },
                replayed: { const: true },
              },
              required: ["callId", "ok", "durationMs"],
            },
          },
          "text/event-stream": { schema: { type: "string" } },
        },
      },
      default: PROBLEM,
    },
  };
}

/** Whether a call without arguments is surely wrong: the schema's own `required` says so. */
function requiresArguments(
  { schema }: OpenApiContent["application/json"],
  schemas: OpenApiDocument["components"]["schemas"],
): boolean {
  const name = typeof schema === "object" && typeof schema["$ref"] === "string"
    ? schema["$ref"].slice("#/components/schemas/".length)
    : "";
  const parameters = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
  const required: unknown = typeof parameters === "object" ? parameters["required"] : undefined;
  return Array.isArray(required) && required.length > 0;
}
