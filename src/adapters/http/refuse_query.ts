/**
 * Routes without a query.
 *
 * @module
 */

import { RequestError } from "./responses.ts";

/**
 * Refuses every parameter, for routes that have none.
 *
 * @param url The request's.
 * @throws {RequestError} If there is one.
 */
export function refuseQuery(url: string): void {
  if (!url.includes("?")) return;
  for (const name of new URL(url).searchParams.keys()) {
    throw new RequestError(
      `Query parameter ${JSON.stringify(name.slice(0, 60))} is unknown: this route has none`,
    );
  }
}
