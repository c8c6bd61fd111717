/**
 * A tool's questions as MCP asks its clients: forms, addresses to visit, completions of the client's
 * model, its folders. And the client's answers, as tools get them.
 *
 * @module
 */

import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type CreateMessageRequestParams,
  type InputRequest,
  inputRequired,
  specTypeSchemas,
} from "@modelcontextprotocol/server";
import {
  type Answer,
  argumentsText,
  clip,
  isObject,
  type JsonSchemaObject,
  type JsonValue,
  type Question,
  type QuestionFields,
} from "../../tool/mod.ts";

/** The keyword of a question's schema that says which request of MCP asks it. */
const REQUEST_KEYWORD = "x-mcp-request";

/** What only MCP clients can be asked: a completion of their model, or their folders. */
export type McpClientRequest =
  | { readonly method: "sampling/createMessage"; readonly params: CreateMessageRequestParams }
  | { readonly method: "roots/list" };

const RESULTS = {
  "sampling/createMessage": {
    type: "object",
    properties: { role: { type: "string" }, model: { type: "string" }, content: {} },
    required: ["role", "content", "model"],
  },
  "roots/list": {
    type: "object",
    properties: {
      roots: {
        type: "array",
        items: { type: "object", properties: { uri: { type: "string" } }, required: ["uri"] },
      },
    },
    required: ["roots"],
  },
} as const;

/**
 * A question for `context.ask` that an MCP client answers by itself: a completion by its model
 * (`sampling/createMessage`), or its folders (`roots/list`). The content of the answer is the
 * client's result. Other callers see a question with a schema.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { mcpQuestion } from "@plue/tools/mcp";
 *
 * const capital = defineTool({
 *   name: "capital",
 *   description: "Asks the client's model.",
 *   async execute(_, { ask }) {
 *     const answer = await ask("capital", mcpQuestion({
 *       method: "sampling/createMessage",
 *       params: {
 *         messages: [{ role: "user", content: { type: "text", text: "The capital of France?" } }],
 *         maxTokens: 100,
 *       },
 *     }));
 *     return answer.action === "accept" ? answer.content : null;
 *   },
 * });
 * assert.equal(capital.id, "capital");
 * ```
 */
export function mcpQuestion(
  request: McpClientRequest,
  message: string = MESSAGES[request.method],
): QuestionFields {
  return {
    kind: "input",
    message,
    // A copy: the question outlives the call.
    schema: { ...RESULTS[request.method], [REQUEST_KEYWORD]: { ...request } } as JsonSchemaObject,
  };
}

const MESSAGES = {
  "sampling/createMessage": "A completion by the client's model is wanted",
  "roots/list": "The client's folders are wanted",
} as const satisfies Record<McpClientRequest["method"], string>;

/** A question that cannot be put to an MCP client, and why. */
export class UnaskableError extends TypeError {}

/**
 * The request that asks a question.
 *
 * @throws {UnaskableError} If MCP has no form for it.
 */
export function requestOf(question: Question): InputRequest {
  const { key, kind, url, schema } = question;
  const message = messageOf(question);
  if (message === undefined) {
    throw new UnaskableError(`${cannotAsk(key)}: the call's arguments are too long to be shown`);
  }
  if (kind === "authorization") {
    if (url === undefined) throw new UnaskableError(`${cannotAsk(key)}: it has no URL`);
    return inputRequired.elicitUrl({ message, url });
  }
  const asked = isObject(schema) ? schema[REQUEST_KEYWORD] : undefined;
  // It was made by `mcpQuestion`, or written as JSON.
  if (isObject(asked)) return { ...asked } as unknown as InputRequest;
  const requestedSchema = hasOneField(question)
    ? { type: "object", properties: { [FIELD]: schema }, required: [FIELD] }
    : { ...(isObject(schema) ? schema : EMPTY_FORM) };
  const params = { message, requestedSchema };
  const { issues: [issue] = [] } = specTypeSchemas.ElicitRequestFormParams["~standard"]
    .validate(params);
  if (issue !== undefined) {
    throw new UnaskableError(
      `${cannotAsk(key)}: MCP asks forms of strings, numbers, booleans and choices only ` +
        `(${issue.path?.join("/")}: ${clip(issue.message, MAX_WORDS)})`,
    );
  }
  return { method: "elicitation/create", params } as InputRequest;
}

/**
 * Whether a question is asked by a form with one field, because its answer is no object, and MCP has
 * no other forms.
 */
export function hasOneField({ kind, schema }: Question): boolean {
  return (kind === "input" || kind === "client") && isObject(schema) && schema["type"] !== "object";
}

/** The name of that field. */
const FIELD = "answer";

const MAX_WORDS = 200;
const EMPTY_FORM = { type: "object", properties: {} };
/** How many characters of a call's arguments are shown with the question whether it may run. */
const MAX_ARGUMENTS = 20_000;

function cannotAsk(key: string): string {
  return `Cannot ask ${JSON.stringify(key)}`;
}

/** The words of a question; `undefined` if the arguments that it is about cannot be shown. */
function messageOf({ kind, message, arguments: args, issues = [] }: Question): string | undefined {
  const shown = (kind === "approval" || kind === "client") && args !== undefined
    ? argumentsText(args, MAX_ARGUMENTS, 2)
    : "";
  if (shown === undefined) return undefined;
  const about = shown && `\n\n${shown}`;
  const wrong = issues.length === 0
    ? ""
    : `\n\nThe last answer did not fit: ${
      issues.map(({ path, message }) => `${path}: ${message}`).join("; ")
    }`;
  return `${message}${about}${wrong}`;
}

/**
 * The answer that a client's response is; `undefined` if it is none.
 *
 * @param isField Whether the form had one field, see {@linkcode hasOneField}.
 */
export function answerOf(response: unknown, isField: boolean): Answer | undefined {
  if (!isObject(response)) return undefined;
  const { action, content } = response;
  if (action === "decline" || action === "cancel") return { action };
  if (action === "accept") {
    const given = isField && isObject(content) ? content[FIELD] : content;
    return given === undefined ? { action } : { action, content: given as JsonValue };
  }
  const isResult = "roots" in response || "role" in response;
  return isResult ? { action: "accept", content: response as JsonValue } : undefined;
}

/** What a client must have declared to be asked that way. */
export function capabilitiesFor({ method, params }: InputRequest): ClientCapabilities {
  const asked: { readonly [member: string]: unknown } = params ?? {};
  switch (method) {
    case "elicitation/create":
      return { elicitation: asked["mode"] === "url" ? { url: {} } : { form: {} } };
    case "sampling/createMessage":
      return {
        sampling: asked["tools"] === undefined && asked["toolChoice"] === undefined
          ? {}
          : { tools: {} },
      };
    case "roots/list":
      return { roots: {} };
  }
}

/** Those of the wanted capabilities that a client has not declared; `undefined` if it has all. */
export function missingOf(
  wanted: ClientCapabilities,
  declared: ClientCapabilities,
): ClientCapabilities | undefined {
  const missing: Record<string, unknown> = {};
  for (const [name, parts] of Object.entries(wanted)) {
    const own = (declared as Record<string, unknown>)[name];
    if (!isObject(own)) {
      missing[name] = parts;
      continue;
    }
    const lacking = Object.keys(isObject(parts) ? parts : {}).filter((part) =>
      own[part] === undefined &&
      // A client that names no mode of elicitation has forms, as before there were modes.
      !(name === "elicitation" && part === "form" && own["url"] === undefined)
    );
    if (lacking.length > 0) missing[name] = Object.fromEntries(lacking.map((part) => [part, {}]));
  }
  return Object.keys(missing).length === 0 ? undefined : missing as ClientCapabilities;
}

/** The capabilities that a request of revision 2026-07-28 declares. */
export function declaredBy(
  meta: { readonly [key: string]: unknown } | undefined,
): ClientCapabilities {
  const declared = meta?.[CLIENT_CAPABILITIES_META_KEY];
  return isObject(declared) ? declared : {};
}
