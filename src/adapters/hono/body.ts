/**
 * A request's body: JSON, and bounded.
 *
 * @module
 */

import type { Context } from "hono";
import { boundedText } from "./bounded_text.ts";
import { type Problem, problemResponse } from "./problem.ts";

const NOT_JSON: Problem = {
  status: 415,
  code: "unsupported_media_type",
  detail: 'The body must be JSON, with the header "content-type: application/json"',
};

/** Answers with the body of a request, or says why it cannot be taken. */
export type BodyReader = (
  c: Context,
  answer: (text: string) => Promise<Response>,
) => Promise<Response>;

/**
 * Makes the reader of bodies. One that is too large is not read whole.
 *
 * Anything but JSON is refused: a web page may send other types to any server without asking.
 *
 * @param maxSize In bytes.
 */
export function createBodyReader(maxSize: number): BodyReader {
  const tooLarge = (): Response =>
    problemResponse({
      status: 413,
      code: "payload_too_large",
      detail: `The body must have at most ${maxSize} bytes`,
    });
  return async (c, answer) => {
    const { headers } = c.req.raw;
    const type = headers.get("content-type") ?? "";
    if (type !== "application/json" && !/^application\/json\s*(;|$)/i.test(type)) {
      return problemResponse(NOT_JSON);
    }
    // The server holds a client to the length that it declared.
    const declared = headers.get("content-length");
    if (declared !== null && !headers.has("transfer-encoding")) {
      return Number(declared) <= maxSize ? await answer(await c.req.text()) : tooLarge();
    }
    const text = await boundedText(c.req.raw.body, maxSize);
    return text === undefined ? tooLarge() : await answer(text);
  };
}
