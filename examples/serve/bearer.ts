/**
 * The check of a bearer token. The time it takes does not tell how much of a token is right.
 *
 * @module
 */

import { createHash, timingSafeEqual } from "node:crypto";

/** Makes the check of a request's `Authorization` header. */
export function bearerCheck(token: string): (request: Request) => boolean {
  // Digests have equal lengths, as `timingSafeEqual` needs.
  const wanted = digest(token);
  return (request) => {
    const given = /^bearer ([\x21-\x7e]{1,1024})$/i
      .exec((request.headers.get("authorization") ?? "").slice(0, 1_100))?.[1];
    return timingSafeEqual(digest(given ?? ""), wanted) && given !== undefined;
  };
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
