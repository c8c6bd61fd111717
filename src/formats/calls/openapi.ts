/**
 * OpenAPI 3.1: a request to the operation of a tool, and its response.
 *
 * @module
 */

import type { JsonValue } from "../../tool/mod.ts";
import { HTTP_STATUS } from "./http_status.ts";
import { given, type JsonRecord, Shape, textOf } from "./shape.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** What answers a request. */
export interface OpenApiResponse {
  status: number;
  headers: { "content-type": "application/json" | "application/problem+json" };
  body: JsonValue;
}

// Read calls

const SHAPE = new Shape("an OpenAPI request");

/** Where an export puts its operations, unless it is told otherwise. */
const TEMPLATE = "/tools/{id}/execute";

function read(request: unknown): readonly WireCall[] {
  if (!Array.isArray(request)) return [callOf(request, "")];
  return request.map((item, index) => callOf(item, `/${index}`));
}

function callOf(value: unknown, at: string): WireCall {
  const raw = SHAPE.record(value, at, 'an object with "path" or "operationId"');
  const id = textOf(raw["callId"]);
  const input = raw["body"];
  if (given(raw, "operationId")) {
    return { id, name: SHAPE.text(raw["operationId"], `${at}/operationId`), input, raw };
  }
  const path = SHAPE.text(raw["path"], `${at}/path`);
  const toolId = idIn(path, raw, at);
  return { id, name: path, input, raw, ...(toolId === undefined ? {} : { toolId }) };
}

/** The id that stands in a path where its template has `{id}`. */
function idIn(path: string, raw: JsonRecord, at: string): string | undefined {
  const template = given(raw, "template")
    ? SHAPE.text(raw["template"], `${at}/template`)
    : TEMPLATE;
  const [before = "", after = ""] = template.split("{id}");
  const query = path.indexOf("?");
  const plain = query === -1 ? path : path.slice(0, query);
  if (!plain.startsWith(before) || !plain.endsWith(after)) return undefined;
  const segment = plain.slice(before.length, plain.length - after.length);
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

// Write results

function write(_call: AnsweredCall, answer: Answer): OpenApiResponse {
  if (answer.ok) {
    return { status: 200, headers: { "content-type": "application/json" }, body: answer.value };
  }
  const { code, message, issues, retryable } = answer.error;
  const status = HTTP_STATUS[code];
  return {
    status,
    headers: { "content-type": "application/problem+json" },
    body: {
      type: "about:blank",
      status,
      code,
      detail: message,
      ...(issues === undefined ? {} : { issues: issues.map((issue) => ({ ...issue })) }),
      retryable,
    },
  };
}

// Notes

/** `{ path, body, template? }` or `{ operationId, body }`, or a list of them. */
export const OPENAPI_CALLS: CallFormat<OpenApiResponse, OpenApiResponse> = {
  title: "an OpenAPI request",
  read,
  write,
  gather: (parts) => parts,
  notes: [
    'A request is { path, body } or { operationId, body }; give the export\'s own "path" as template.',
    "A failure is a problem document (RFC 9457) with the status that the HTTP handler gives it.",
  ],
};
