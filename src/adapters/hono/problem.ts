/**
 * Errors as `application/problem+json` (RFC 9457).
 *
 * @module
 */

import { HTTP_STATUS } from "../../formats/calls/http_status.ts";
import type { FailureCode, Issue, ToolFailure } from "../../tool/mod.ts";

/** The codes of problems that are not failures of a call. */
export type ProblemCode =
  | FailureCode
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
  | "rate_limited"
  | "unsupported_media_type"
  | "internal";

/** A problem, before it becomes a response. */
export interface Problem {
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly issues?: readonly Issue[];
  readonly retryable?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members, such as `callId`. */
  readonly members?: Readonly<Record<string, unknown>>;
}

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  499: "Client Closed Request",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** Makes the response of a problem. */
export function problemResponse(problem: Problem): Response {
  const { status, code, detail, issues, retryable, headers, members } = problem;
  const body = {
    type: "about:blank",
    title: TITLES[status] ?? "Error",
    status,
    code,
    detail,
    ...(issues === undefined ? {} : { issues }),
    ...(retryable === undefined ? {} : { retryable }),
    ...members,
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...headers,
    },
  });
}

/** The problem that a failed call is answered with. */
export function problemOfFailure(
  failure: ToolFailure,
  callId: string,
): Problem {
  const { code, message, issues, retryable, acknowledged } = failure.error;
  return {
    status: HTTP_STATUS[code],
    code,
    detail: message,
    ...(issues === undefined ? {} : { issues }),
    retryable,
    members: {
      callId,
      durationMs: failure.durationMs,
      ...(acknowledged === undefined ? {} : { acknowledged }),
      ...(failure.replayed === undefined ? {} : { replayed: true }),
    },
    ...(code === "overloaded" ? { headers: { "retry-after": "1" } } : {}),
  };
}

/** An error that says what the request is answered with. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem, options?: ErrorOptions) {
    super(problem.detail, options);
    this.problem = problem;
  }
}

/** The problem that a request is answered with at which something broke: the log knows what. */
export function problemOfThrown(error: unknown): Problem {
  return error instanceof ProblemError ? error.problem : {
    status: 500,
    code: "internal",
    detail: "The server could not answer this request",
  };
}

/**
 * A request that cannot be read as it is: 400, and what would be right.
 *
 * @param pointer Where in the body it is wrong: a JSON Pointer.
 */
export function badRequest(detail: string, pointer?: string): Problem {
  return {
    status: 400,
    code: "bad_request",
    detail,
    ...(pointer === undefined ? {} : { members: { pointer } }),
  };
}

/** The one answer for a tool that does not exist and for one that the caller may not see. */
export function noSuchTool(id: string): Problem {
  return {
    status: 404,
    code: "unknown_tool",
    detail: `Cannot find tool ${JSON.stringify(id.slice(0, 260))} among the tools of this caller`,
    retryable: false,
  };
}
