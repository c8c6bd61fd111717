/** The options that every protocol over HTTP has, and the parts that they name. */

import { type Check, checkFlag, fail } from "../../tool/mod.ts";
import { checkObject, SERVER_CHECKS, type ServerOptions } from "./options.ts";
import { allowCrossOrigin } from "./origins.ts";
import { type ObserveOptions, observeRequests } from "./observe.ts";
import type { HttpPart } from "./handler.ts";
import { limitRate, type RateLimitOptions } from "./rate_limit.ts";

/** The options of every protocol over HTTP: the options of a server, and the options of parts. */
export interface HttpOptions extends ServerOptions {
  /**
   * The limit on the requests of one caller. A turn counts 1 for each of its calls.
   *
   * @default {no limit}
   */
  readonly rateLimit?: RateLimitOptions;
  /** Traces, measures and logs requests. `GET /metrics` works without it. */
  readonly observe?: ObserveOptions;
  /**
   * Lets pages of the origins in `allowedOrigins` read the responses; browsers prevent it otherwise.
   *
   * @default {false}
   */
  readonly cors?: boolean;
}

/** The check of each option; its type keeps the table complete. */
export const HTTP_CHECKS: { readonly [Option in keyof HttpOptions]-?: Check } = {
  ...SERVER_CHECKS,
  rateLimit: checkObject,
  observe: checkObject,
  cors: checkFlag,
};

/** The parts that the options of every protocol name. */
export function sharedParts(
  { observe, cors, rateLimit, tasks, taskAfterMs }: HttpOptions,
): readonly HttpPart[] {
  if (taskAfterMs !== undefined && tasks === undefined) {
    fail("serve tools", "taskAfterMs has no effect without tasks");
  }
  return [
    ...(observe === undefined ? [] : [observeRequests(observe)]),
    ...(cors === true ? [allowCrossOrigin()] : []),
    ...(rateLimit === undefined ? [] : [limitRate(rateLimit)]),
  ];
}
