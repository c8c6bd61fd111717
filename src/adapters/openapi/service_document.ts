/**
 * Describes the HTTP service as an OpenAPI 3.1 document: one operation per tool that the caller
 * sees, and the other routes, which do not depend on the tools. The tools' schemas come from the
 * export to `openapi@3.1`. In requests, the arguments are in an object with the ids of the call; in
 * responses, the result is in an object with the fields of the outcome.
 */

import type * as formats from "../../formats/mod.ts";
import { valueKind, VOCABULARY, type VocabularyName } from "../../select/mod.ts";
import {
  type Check,
  checkRisk,
  checkText,
  checkTexts,
  createCheck,
  defined,
  isObject,
  RISK_LEVELS,
} from "../../tool/mod.ts";

/** The description of the service in the document. */
export interface OpenApiOptions {
  /** @default {"Tools"} */
  readonly title?: string;
  /** The version of the service. @default {"1.0.0"} */
  readonly version?: string;
  readonly description?: string;
  /** The URLs of the routes. By default, they are next to the document. */
  readonly servers?: readonly string[];
  /** Security Scheme Objects by name. One of them is enough. By default, a bearer token. */
  readonly securitySchemes?: Readonly<Record<string, unknown>>;
}

export const OPENAPI_CHECKS: { readonly [Option in keyof OpenApiOptions]-?: Check } = {
  title: checkText,
  version: checkText,
  description: checkText,
  servers: checkTexts,
  securitySchemes: createCheck("an object", isObject),
};

export function openApiDocument(
  exported: formats.ExportResult<formats.OpenApiDocument>,
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
    info: { title, version, ...defined({ description }) },
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    ...defined({
      servers: servers?.map((url) => ({ url })),
      security: securitySchemes && Object.keys(securitySchemes).map((name) => ({ [name]: [] })),
    }),
    paths: { ...routes(), ...paths },
    components: {
      schemas: { ...SCHEMAS, ...tools.components.schemas },
      ...defined({ securitySchemes }),
    },
    // The omitted tools, with reasons.
    ...(rejected.length > 0 && {
      "x-tools-left-out": rejected.map(({ tool, message }) => ({ tool, message })),
    }),
  };
}

/** Returns the operation of a tool, with the service's fields around arguments and results. */
function operationOf(
  operation: formats.OpenApiOperation,
  schemas: formats.OpenApiDocument["components"]["schemas"],
): Json {
  const input = operation.requestBody.content["application/json"];
  const output = operation.responses["200"].content?.["application/json"];
  const mustHave = requiresArguments(input, schemas);
  const schema = {
    type: "object",
    properties: { arguments: input.schema, ...CALL_FIELDS },
    ...(mustHave && { required: ["arguments"] }),
    additionalProperties: false,
  };
  const examples = input.examples && Object.fromEntries(
    Object.entries(input.examples).map(([name, { value, ...rest }]) => [
      name,
      { ...rest, value: { arguments: value } },
    ]),
  );
  return {
    ...operation,
    requestBody: {
      required: mustHave,
      content: { "application/json": { schema, ...defined({ examples }) } },
    },
    responses: {
      "200": json(
        "The result; or an event stream that ends with the result.",
        object({
          ...RESULT_FIELDS,
          ok: { const: true },
          "content?": output === undefined ? true : output.schema,
          "blocks?": described(
            "The content has blocks, such as images; the schema describes structuredContent.",
            { const: true },
          ),
          "truncated?": { const: true },
          "replayed?": { const: true },
        }),
        EVENTS,
      ),
      "202": ACCEPTED,
      default: PROBLEM,
    },
  };
}

function requiresArguments(
  { schema }: formats.OpenApiContent["application/json"],
  schemas: formats.OpenApiDocument["components"]["schemas"],
): boolean {
  const name = typeof schema === "object" && typeof schema["$ref"] === "string"
    ? schema["$ref"].slice("#/components/schemas/".length)
    : "";
  const parameters = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
  const required: unknown = typeof parameters === "object" ? parameters["required"] : undefined;
  return Array.isArray(required) && required.length > 0;
}

type Json = { readonly [key: string]: unknown };

const TEXT: Json = { type: "string" };
const NUMBER: Json = { type: "number" };
const FLAG: Json = { type: "boolean" };
const ANY: Json = { type: "object" };
const LIST: Json = { type: "array", items: ANY };
const RESULT_FIELDS: Json = { callId: TEXT, durationMs: NUMBER };

const listOf = (items: Json): Json => ({ type: "array", items });
const described = (description: string, schema: Json = {}): Json => ({ ...schema, description });
const oneOf = (...words: readonly string[]): Json => ({ type: "string", enum: words });
const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const RISK = oneOf(...RISK_LEVELS);

/** Makes the schema of an object. A name that ends in "?" is optional. */
function object(fields: Json): Json {
  const entries = Object.entries(fields);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, field]) => [name.replace("?", ""), field])),
    required: entries.flatMap(([name]) => name.endsWith("?") ? [] : [name]),
  };
}

function texts(...names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, TEXT]));
}

function pageOf(name: string, entry: Json): Json {
  return object({
    [name]: listOf(entry),
    "nextCursor?": described("Absent on the last page.", TEXT),
  });
}

const contentOf = (schemas: Readonly<Record<string, Json>>): Json =>
  Object.fromEntries(Object.entries(schemas).map(([type, schema]) => [type, { schema }]));
const json = (description: string, schema: Json, others: Readonly<Record<string, Json>> = {}) => ({
  description,
  content: contentOf({ "application/json": schema, ...others }),
});
const EVENTS = { "text/event-stream": TEXT };

const PROBLEM: Json = {
  description: "The problem (RFC 9457).",
  content: contentOf({ "application/problem+json": ref("Problem") }),
};

/** The response of a call that waits for answers, and of a call that became a task. */
const ACCEPTED: Json = {
  ...json("The call waits for answers, or runs as a task, at the path in Location.", {
    anyOf: [ref("SuspendedCall"), ref("Task")],
  }),
  headers: { location: { schema: TEXT } },
};

const ID: Json = {
  type: "string",
  minLength: 1,
  maxLength: 256,
  // No spaces at the ends. Some engines do not support look-around.
  pattern: "^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$",
};

const CALL_FIELDS: Json = {
  callId: described("Names the call, to abort it.", ID),
  sessionId: described("The conversation of the call.", ID),
  messageId: described("The message with the call.", ID),
  idempotencyKey: described("A later call with this key has the same result.", ID),
};

/** The schemas of the routes. The names of tools' schemas contain a ".", so that none clash. */
const SCHEMAS: Json = {
  Problem: object({
    ...texts("type", "title", "callId?"),
    status: { type: "integer" },
    code: described("The kind of problem, for programs.", TEXT),
    detail: described("The problem and its correction.", TEXT),
    "issues?": listOf(ref("Issue")),
    "retryable?": described("True if the same call may succeed later.", FLAG),
    "ran?": described("Whether the tool ran.", oneOf("no", "yes", "unknown")),
    "durationMs?": NUMBER,
  }),
  Issue: object({
    path: described("A JSON Pointer.", TEXT),
    ...texts("keyword", "expected", "message"),
  }),
  Question: object({
    key: described("The key of the answer.", TEXT),
    kind: oneOf("input", "approval", "authorization", "client"),
    message: TEXT,
    "schema?": described("JSON Schema of the content of an answer."),
    "url?": described("The address to visit, for an authorization.", TEXT),
    "arguments?": described("The arguments of the call."),
    "issues?": listOf(ref("Issue")),
  }),
  Answers: described("By the keys of the questions.", {
    type: "object",
    additionalProperties: object({ action: oneOf("accept", "decline", "cancel"), "content?": {} }),
  }),
  SuspendedCall: object({
    ...RESULT_FIELDS,
    status: { const: "input_required" },
    ok: { const: false },
    error: ANY,
    questions: listOf(ref("Question")),
    ticket: described("Continues the call.", TEXT),
  }),
  Task: object({
    ...texts("id", "tool", "callId"),
    status: oneOf("working", "input_required", "completed", "failed", "cancelled"),
    createdAt: described("Milliseconds since 1970.", NUMBER),
    updatedAt: described("Milliseconds since 1970.", NUMBER),
    ttlMs: NUMBER,
    pollMs: NUMBER,
    "progress?": ANY,
    "metadata?": ANY,
    "questions?": listOf(ref("Question")),
    "result?": described("The result, once the task has ended.", ANY),
  }),
  Tool: object({
    ...texts("id", "name", "namespace?", "title?", "description", "version?", "category?"),
    parameters: described("JSON Schema of the arguments."),
    "returns?": described("JSON Schema of the result."),
    risk: RISK,
    tags: listOf(TEXT),
    "annotations?": ANY,
    executable: FLAG,
  }),
  Page: pageOf("tools", ref("Tool")),
  Export: object({
    target: TEXT,
    tools: described("The tools in the target's shape."),
    names: described("The tool ids by exported name.", LIST),
    rejected: LIST,
    warnings: { type: "array" },
    "losses?": LIST,
    "request?": described("The target's fields for toolChoice and parallel.", ANY),
  }),
  Turn: object({
    target: TEXT,
    messages: described("The messages to send back, in the target's shape."),
    "suspended?": described("The calls that wait for answers.", LIST),
    "losses?": described("Images and files that the target does not accept.", LIST),
    calls: listOf(object({
      ...texts("callId", "wireName"),
      name: described("The tool's id; null if there is none.", { type: ["string", "null"] }),
      result: ANY,
    })),
  }),
};

const query = (name: string, description: string, schema = TEXT): Json => ({
  name,
  in: "query",
  description,
  schema,
});

const FILTERS: readonly Json[] = Object.entries(VOCABULARY).map(([name, { text }]) => {
  const { shape, check } = valueKind(name as VocabularyName);
  const isList = shape === "list" ? ", separated by commas" : "";
  const schema = check === checkRisk ? RISK : shape === "flag" ? oneOf("true", "false") : TEXT;
  const meaning = shape === "flag" ? `If false: ${text}` : text;
  return query(name, `${meaning[0]?.toUpperCase()}${meaning.slice(1)}${isList}.`, schema);
});

const ENTRIES = { type: "integer", minimum: 1, maximum: 1000 };
const LIMIT: Json = query("limit", "The maximum number of entries.", ENTRIES);

const PAGING: readonly Json[] = [LIMIT, query("cursor", "The nextCursor of the previous page.")];

/** The parameters in paths, by the first segment of the path. */
const IN_PATH: Readonly<Record<string, string>> = {
  tools: "The tool's id.",
  executions: "The call's id.",
  calls: "The call's or the task's id.",
  dispatch: "The target that the model's tools were exported to.",
};

type Operation = readonly [
  path: string,
  method: "get" | "post" | "delete",
  operationId: string,
  summary: string,
  responses: Json,
  rest?: {
    readonly parameters?: readonly Json[];
    readonly requestBody?: Json;
    readonly security?: readonly Json[];
  },
];

const OPERATIONS: readonly Operation[] = [
  ["/tools", "get", "listTools", "The caller's tools", {
    "200": json("A page; or, with a format, an export.", { anyOf: [ref("Page"), ref("Export")] }),
  }, {
    parameters: [
      query("q", "A search; the best match is first."),
      ...PAGING,
      ...FILTERS,
      query("format", "For an export: the target. Exports are not paged."),
      query("losses", "For an export: with the losses.", oneOf("0", "1")),
      query("toolChoice", "For an export: auto, none, required, or the id of the tool to call."),
      query(
        "parallel",
        "For an export: whether the model may call several tools at once.",
        oneOf("true", "false"),
      ),
    ],
  }],
  ["/tools/{id}", "get", "getTool", "One of the caller's tools", {
    "200": json("The tool.", ref("Tool")),
  }],
  ["/tools/{id}/explain", "get", "explainTool", "Explains whether the caller sees a tool", {
    "200": json("The explanation.", ANY),
  }, { parameters: FILTERS }],
  ["/explain", "get", "explainTools", "Explains which tools the caller sees", {
    "200": json(
      "The explanations. Only callers with `explain` get hidden tools, roles and scopes.",
      object({ roles: listOf(TEXT), scopes: listOf(TEXT), tools: LIST }),
    ),
  }, { parameters: FILTERS }],
  ["/executions/{callId}/abort", "post", "abortExecution", "Aborts one of the caller's calls", {
    "202": json(
      "The call is being aborted.",
      object({ callId: TEXT, status: { const: "aborting" } }),
    ),
  }],
  ["/calls", "get", "listTasks", "The caller's tasks, the newest first", {
    "200": json("A page.", pageOf("tasks", ref("Task"))),
  }, { parameters: PAGING }],
  ["/calls/{id}", "get", "getTask", "One of the caller's tasks", {
    "200": json('The task; or a stream of events "task" until it has ended.', ref("Task"), EVENTS),
  }],
  ["/calls/{id}", "post", "continueCall", "Answers the questions of a call or a task", {
    "200": json("The result of the call.", ANY),
    "202": ACCEPTED,
  }, {
    requestBody: {
      required: true,
      content: contentOf({
        "application/json": object({
          "ticket?": described("Absent for a task.", TEXT),
          "answers?": ref("Answers"),
        }),
      }),
    },
  }],
  ["/calls/{id}", "delete", "cancelTask", "Cancels one of the caller's tasks", {
    "200": json("The task.", ref("Task")),
  }],
  ["/dispatch/{target}", "post", "dispatchTurn", "Runs the calls in a provider's response", {
    "200": json("The messages to send back, and the result of each call.", ref("Turn")),
  }, {
    parameters: FILTERS,
    requestBody: {
      required: true,
      description: "The provider's response, unchanged.",
      content: contentOf({ "application/json": {} }),
    },
  }],
  ["/events", "get", "followTools", "Changes of the caller's tools", {
    "200": {
      description: 'Events "added", "removed" and "updated", each with the id of a tool.',
      content: contentOf(EVENTS),
    },
    "204": { description: "The tools of this server do not change." },
  }],
  ["/journal", "get", "listRecords", "The journal of calls, the newest first", {
    "200": json(
      "The records, for callers with `explain`; and whether there are older ones.",
      object({ records: LIST, more: FLAG }),
    ),
  }, {
    parameters: [
      ...["callId", "principal", "tool"].map((name) => query(name, "The records with this value.")),
      query("outcome", 'The outcome: "ok", or the code of a failure.'),
      LIMIT,
    ],
  }],
  ["/metrics", "get", "getMetrics", "Metrics of the calls of the caller's tools", {
    "200": json("The metrics.", ANY, { "text/plain": TEXT }),
  }],
  ["/healthz", "get", "getHealth", "The state of the server", {
    "200": json("The server is up.", ANY),
  }, { security: [] }],
];

function routes(): Json {
  const paths: Record<string, Json> = {};
  for (const [path, method, operationId, summary, responses, rest = {}] of OPERATIONS) {
    const { parameters = [], ...others } = rest;
    const [, segment = "", name] = /^\/(\w+)(?:\/\{(\w+)\})?/.exec(path) ?? [];
    const inPath = name === undefined
      ? []
      : [{ name, in: "path", required: true, description: IN_PATH[segment], schema: TEXT }];
    const all = [...inPath, ...parameters];
    paths[path] = {
      ...paths[path],
      [method]: {
        operationId,
        summary,
        ...(all.length > 0 && { parameters: all }),
        ...others,
        responses: { ...responses, default: PROBLEM },
      },
    };
  }
  return paths;
}
