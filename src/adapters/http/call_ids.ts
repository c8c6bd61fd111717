/**
 * The ids that a client gives a call, in the body or in headers.
 *
 * @module
 */

import { RequestError } from "./responses.ts";

/** The ids of a call, as they came over HTTP. */
export interface CallIds {
  readonly callId: string | undefined;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly idempotencyKey: string | undefined;
}

/** The ids by their names in a body, each with its header. */
export const CALL_ID_HEADERS: { readonly [Field in keyof CallIds]: string } = {
  callId: "x-call-id",
  sessionId: "x-session-id",
  messageId: "x-message-id",
  idempotencyKey: "idempotency-key",
};

/**
 * Printable ASCII, which a header can carry and a log can show, without outer spaces: a header would
 * lose them, and the client would get another id than it gave. Bun does not compile a lookbehind.
 */
const ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;

/**
 * Reads the ids of a call.
 *
 * @throws {RequestError} If an id is wrong, or another one in the body than in a header.
 */
export function readCallIds(body: Readonly<Record<string, unknown>>, headers: Headers): CallIds {
  return {
    callId: readId("callId", body, headers),
    sessionId: readId("sessionId", body, headers),
    messageId: readId("messageId", body, headers),
    idempotencyKey: readId("idempotencyKey", body, headers),
  };
}

function readId(
  field: keyof CallIds,
  body: Readonly<Record<string, unknown>>,
  headers: Headers,
): string | undefined {
  const inBody: unknown = body[field];
  const inHeader = headers.get(CALL_ID_HEADERS[field]) ?? undefined;
  if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader) {
    throw new RequestError(
      `Cannot read the call: "${field}" in the body and header "${CALL_ID_HEADERS[field]}" differ`,
    );
  }
  const value = inBody ?? inHeader;
  if (value === undefined || (typeof value === "string" && ID.test(value))) return value;
  throw new RequestError(
    `Cannot read the call: "${field}" must be 1 to 256 printable ASCII characters, with no ` +
      "space before or after them",
    inBody === undefined ? undefined : `/${field}`,
  );
}
