/**
 * What a caller sends to run a tool: the arguments, and what the call belongs to, in the body or
 * in headers.
 *
 * @module
 */

import { RequestError } from "./request_error.ts";

/** What a call belongs to, as it came over HTTP. */
export interface CallIds {
  readonly callId: string | undefined;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly idempotencyKey: string | undefined;
}

/** A call as it came over HTTP. */
export interface CallEnvelope extends CallIds {
  readonly arguments: unknown;
}

const HEADERS = {
  callId: "x-call-id",
  sessionId: "x-session-id",
  messageId: "x-message-id",
  idempotencyKey: "idempotency-key",
} as const;

type IdField = keyof typeof HEADERS;

/**
 * Printable ASCII: what a header can carry, and what a log can show. Outer spaces a header would
 * lose, and then the id that is answered would not be the one that was given.
 */
const ID = /^(?! )[\x20-\x7e]{1,256}(?<! )$/;

/**
 * Reads a call.
 *
 * @param text The body; an empty one is a call without arguments.
 * @param headers The request's headers.
 * @throws {RequestError} If the body is not the JSON that it must be.
 */
export function readEnvelope(text: string, headers: Headers): CallEnvelope {
  const body = text.trim() === "" ? {} : parse(text);
  for (const field of Object.keys(body)) {
    if (field !== "arguments" && !Object.hasOwn(HEADERS, field)) {
      throw new RequestError(
        `Cannot read the body: ${JSON.stringify(field.slice(0, 60))} is not a field of a call. ` +
          'The arguments of the tool go into "arguments"; the other fields are ' +
          Object.keys(HEADERS).join(", "),
      );
    }
  }
  return { arguments: body["arguments"], ...readCallIds(body, headers) };
}

/**
 * Reads what a call belongs to.
 *
 * @throws {RequestError} If an id is wrong, or another one in the body than in a header.
 */
export function readCallIds(
  body: Readonly<Record<string, unknown>>,
  headers: Headers,
): CallIds {
  const id = (field: IdField): string | undefined => {
    const inBody: unknown = body[field];
    const inHeader = headers.get(HEADERS[field]) ?? undefined;
    if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader) {
      throw new RequestError(
        `Cannot read the call: "${field}" in the body and header "${HEADERS[field]}" differ`,
      );
    }
    const value = inBody ?? inHeader;
    if (value === undefined || (typeof value === "string" && ID.test(value))) {
      return value;
    }
    throw new RequestError(
      `Cannot read the call: "${field}" must be 1 to 256 printable ASCII characters, with no ` +
        "space before or after them",
      inBody === undefined ? undefined : `/${field}`,
    );
  };
  return {
    callId: id("callId"),
    sessionId: id("sessionId"),
    messageId: id("messageId"),
    idempotencyKey: id("idempotencyKey"),
  };
}

function parse(text: string): Record<string, unknown> {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // The engine's own message would echo a part of the body.
    throw new RequestError("Cannot read the body: it is not JSON");
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new RequestError(
      'Cannot read the body: it must be an object such as {"arguments": {}}',
    );
  }
  return body as Record<string, unknown>;
}
