/** Responses in JSON, and errors as `application/problem+json` (RFC 9457). */

import * as check from "../../tool/mod.ts";
import { isObject } from "../../tool/mod.ts";
import { IS_BUN, IS_DENO } from "./runtime.ts";

/** Headers of every response with a body: pages of other sites cannot embed it or guess its type. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
});

const JSON_TYPE = { "content-type": "application/json" };

export const UNCACHED_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  ...SAFE_HEADERS,
};

const JSON_HEADERS = { ...JSON_TYPE, ...UNCACHED_HEADERS };

const FURTHER_HEADERS: readonly Header[] = Object.entries(UNCACHED_HEADERS);

/**
 * The options of a JSON response that must not be cached. Bun copies a Headers object in half the
 * time that it takes to read a plain one; Hono's server for Node is fast with plain objects only.
 * Deno creates a response with a content type in 0.1 µs, and with more headers in 5 µs.
 */
const JSON_INIT: ResponseInit = Object.freeze({
  headers: IS_DENO ? JSON_TYPE : IS_BUN ? new Headers(JSON_HEADERS) : JSON_HEADERS,
});

/** A JSON response that must not be cached. @param text The value as JSON, if it is known. */
export function json(
  value: unknown,
  status?: number,
  text: string = JSON.stringify(value),
): Response {
  const init = status === undefined ? JSON_INIT : { ...JSON_INIT, status };
  const response = new Response(text, init);
  if (IS_DENO) write(response.headers, FURTHER_HEADERS);
  return response;
}

export function methodNotAllowed(allow: string): Response {
  return problemResponse({
    status: 405,
    code: "method_not_allowed",
    detail: `This route allows only ${allow}`,
    headers: { allow },
  });
}

/** Returns true for a response, even of another realm or polyfill. */
export function isResponse(value: unknown): value is Response {
  return typeof value === "object" && value !== null && "headers" in value &&
    "status" in value;
}

export type Header = readonly [name: string, value: string];

/** Sets headers of a response, and extends `vary`. */
export function withHeaders(response: Response, headers: readonly Header[]): Response {
  if (headers.length === 0) return response;
  try {
    write(response.headers, headers);
    return response;
  } catch {
    // The headers of a response of `fetch` are immutable.
    const copy = copyOf(response);
    write(copy.headers, headers);
    return copy;
  }
}

export function copyOf({ body, status, statusText, headers }: Response): Response {
  // The class Response of `@hono/node-server` uses given headers themselves, and not a copy of them.
  return new Response(body, { status, statusText, headers: new Headers(headers) });
}

function write(own: Headers, headers: readonly Header[]): void {
  for (const [name, value] of headers) {
    if (name !== "vary") own.set(name, value);
    else if (!names(own.get(name)).includes(value)) own.append(name, value);
  }
}

function names(list: string | null): readonly string[] {
  return list?.split(",").map((name) => name.trim().toLowerCase()) ?? [];
}

const MAX_ACCEPT = 2_048;

/**
 * Chooses one of the offered media types, of which the first is the default. Of two types with the same
 * weight, the later one wins. Wildcards are ignored: most clients send them.
 */
export function chooseType<Type extends string>(
  accept: string | null | undefined,
  offered: readonly [Type, ...Type[]],
): Type {
  let [chosen] = offered;
  if (accept === null || accept === undefined || accept.length > MAX_ACCEPT) return chosen;
  const weights = new Map<string, number>();
  for (const part of accept.split(",")) {
    const [name = "", ...parameters] = part.split(";").map((one) => one.trim().toLowerCase());
    const weight = parameters.find((one) => one.startsWith("q="));
    const value = weight === undefined ? 1 : Number(weight.slice(2));
    // A type may occur more than once, with other parameters.
    weights.set(name, Math.max(value, weights.get(name) ?? 0));
  }
  let most = 0;
  for (const type of offered) {
    const weight = weights.get(type) ?? 0;
    // The comparison is false for NaN.
    if (weight > 0 && weight >= most) {
      chosen = type;
      most = weight;
    }
  }
  return chosen;
}

/** The codes of failed calls and of invalid requests. */
export type ProblemCode =
  | check.FailureCode
  | "bad_request"
  | "unauthorized"
  | "insufficient_scope"
  | "forbidden_host"
  | "forbidden_origin"
  | "execution_closed"
  | "issuer_unavailable"
  | "not_found"
  | "method_not_allowed"
  | "payload_too_large"
  | "request_timeout"
  | "rate_limited"
  | "unsupported_media_type"
  | "internal";

/** A problem, before it becomes a response. */
export interface Problem {
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly issues?: readonly check.Issue[] | undefined;
  readonly retryable?: boolean;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Further members, such as `callId`. JSON omits `undefined` members. */
  readonly members?: Readonly<Record<string, unknown>>;
}

export function problemResponse(problem: Problem): Response {
  const { status, code, detail, issues, retryable, headers, members } = problem;
  const type = check.helpUrl(code);
  const title = code.replaceAll("_", " ");
  const body = { type, title, status, code, detail, issues, retryable, ...members };
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/problem+json", ...UNCACHED_HEADERS, ...headers },
  });
}

export function problemOfFailure(failure: check.ToolFailure, callId: string): Problem {
  const { error, durationMs, questions, ticket, replayed, repaired } = failure;
  const { code, message, issues, retryable, retryAfterMs, acknowledged, ran } = error;
  const waitMs = retryAfterMs ?? (code === "overloaded" ? 1_000 : undefined);
  return {
    status: check.HTTP_STATUS[code],
    code,
    detail: message,
    issues,
    retryable,
    members: {
      callId,
      durationMs,
      acknowledged,
      ran,
      questions,
      ticket,
      replayed,
      repaired,
      retryAfterMs,
    },
    headers: waitMs === undefined ? {} : { "retry-after": `${Math.ceil(waitMs / 1_000)}` },
  };
}

export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem, options?: ErrorOptions) {
    super(problem.detail, options);
    this.problem = problem;
  }
}

export function problemOfThrown(error: unknown): Problem {
  return error instanceof ProblemError ? error.problem : {
    status: 500,
    code: "internal",
    detail: "The server could not answer this request",
  };
}

/** @param pointer The position of the mistake in the body: a JSON Pointer. */
export function badRequest(detail: string, pointer?: string): Problem {
  return { status: 400, code: "bad_request", detail, members: { pointer } };
}

export function unavailable(code: ProblemCode, detail: string, seconds?: number): Problem {
  const headers = seconds === undefined ? undefined : { "retry-after": `${seconds}` };
  return { status: 503, code, detail, retryable: true, headers };
}

/** The problem of a tool that does not exist or is hidden from the caller. */
export function noSuchTool(id: string): Problem {
  return {
    status: 404,
    code: "unknown_tool",
    detail: `Cannot find tool ${JSON.stringify(id.slice(0, 260))} among the tools of this caller`,
    retryable: false,
  };
}

/** The problem of a call or task that does not exist, or belongs to another caller. */
export function notFound(what: string, id: string): Problem {
  const detail = `Cannot find ${what} ${JSON.stringify(id.slice(0, 260))} of this caller`;
  return { status: 404, code: "not_found", detail };
}

/** The error of an invalid request. The message is safe to send. */
export class RequestError extends ProblemError {
  constructor(message: string, pointer?: string) {
    super(badRequest(message, pointer));
  }
}

export function refuseQuery(url: string): void {
  if (!url.includes("?")) return;
  for (const name of new URL(url).searchParams.keys()) {
    throw new RequestError(
      `Query parameter ${JSON.stringify(name.slice(0, 60))} is unknown: this route has none`,
    );
  }
}

/** Returns a body if it is an object with these fields only. The example is for the message. */
export function requireFields(
  body: unknown,
  fields: readonly string[],
  example: string,
): Readonly<Record<string, unknown>> {
  if (!isObject(body)) {
    throw new RequestError(`Cannot read the body: it must be an object such as ${example}`);
  }
  for (const name in body) {
    if (fields.includes(name) || !Object.hasOwn(body, name)) continue;
    const field = name.slice(0, 60);
    throw new RequestError(
      `Cannot read the body: ${JSON.stringify(field)} is not one of its fields: ${
        fields.join(", ")
      }`,
      check.pointerStep(field),
    );
  }
  return body;
}
