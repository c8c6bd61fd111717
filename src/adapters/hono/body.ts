/**
 * A request's body: JSON, and bounded.
 *
 * @module
 */

import type { Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type Problem, problemResponse } from "./problem.ts";

const NOT_JSON: Problem = {
  status: 415,
  code: "unsupported_media_type",
  detail: 'The body must be JSON, with the header "content-type: application/json"',
};

/**
 * Reads the body and answers with it, or says why it cannot be taken, before it is read whole.
 *
 * Anything but JSON is refused: a web page may send other types to any server without asking.
 */
export async function withBody(
  c: Context,
  maxSize: number,
  answer: (text: string) => Promise<Response>,
): Promise<Response> {
  if (!/^application\/json\s*(;|$)/i.test(c.req.header("content-type") ?? "")) {
    return problemResponse(NOT_JSON);
  }
  let response: Response | undefined;
  const stopped = await bodyLimit({
    maxSize,
    onError: () =>
      problemResponse({
        status: 413,
        code: "payload_too_large",
        detail: `The body must have at most ${maxSize} bytes`,
      }),
  })(c, async () => {
    response = await answer(await c.req.text());
  });
  return response ?? stopped as Response;
}
