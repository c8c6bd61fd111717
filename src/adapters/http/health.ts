/**
 * `GET /healthz`: whether the server is up.
 *
 * @module
 */

import type { HttpPart } from "./part.ts";
import { json } from "./responses.ts";

/** The part that answers health checks, whatever host they name: `GET /healthz`. */
export function serveHealth(): HttpPart {
  return () => ({
    routes: [{
      method: "GET",
      path: "/healthz",
      answerPublic: () => json({ status: "ok" }),
      anyHost: true,
    }],
  });
}
