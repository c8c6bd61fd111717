/**
 * The options that every protocol over HTTP has, and the parts that they name.
 *
 * @module
 */

import type { CallTasks } from "../../execute/durable/mod.ts";
import { type Check, isObject, MAX_TIMEOUT_MS, must, numberFrom } from "../../tool/mod.ts";
import { checkObject, having, SERVER_CHECKS, type ServerOptions } from "./options.ts";
import { allowCrossOrigin, type CorsOptions } from "./origins.ts";
import { type ObserveOptions, observeRequests } from "./observe.ts";
import type { HttpPart } from "./handler.ts";
import { limitRate, type RateLimitOptions } from "./rate_limit.ts";

/** The options of every protocol over HTTP: the options of a server, and the options of parts. */
export interface HttpOptions extends ServerOptions {
  /**
   * Runs calls as tasks, which outlive their requests: `callTasks` of `@plue/tools/calls`. By
   * default, every call runs in its request.
   */
  readonly tasks?: CallTasks;
  /**
   * The time after which a call becomes a task, in milliseconds, if its tool allows that. By
   * default, a call becomes a task only if the client sends `Prefer: respond-async`, or if the
   * tool's `execution` is `task`.
   */
  readonly taskAfterMs?: number;
  /**
   * The limit on the requests of one caller. A turn counts 1 for each of its calls.
   *
   * @default {no limit}
   */
  readonly rateLimit?: RateLimitOptions;
  /** Traces, measures and logs requests. `GET /metrics` works without it. */
  readonly observe?: ObserveOptions;
  /**
   * Lets pages of the origins in `allowedOrigins` read the responses. By default, browsers prevent
   * it.
   */
  readonly cors?: CorsOptions | true;
}

const checkCors: Check<true | object> = must(
  "true or an object",
  (value): value is true | Record<string, unknown> => value === true || isObject(value),
);

/** The check of each option; its type keeps the table complete. */
export const HTTP_CHECKS: { readonly [Option in keyof HttpOptions]-?: Check } = {
  ...SERVER_CHECKS,
  tasks: having("start", "what callTasks() gives"),
  taskAfterMs: numberFrom(0, MAX_TIMEOUT_MS),
  rateLimit: checkObject,
  observe: checkObject,
  cors: checkCors,
};

/** The parts that the options of every protocol name. */
export function sharedParts({ observe, cors, rateLimit }: HttpOptions): readonly HttpPart[] {
  return [
    ...(observe === undefined ? [] : [observeRequests(observe)]),
    ...(cors === undefined ? [] : [allowCrossOrigin(cors === true ? {} : cors)]),
    ...(rateLimit === undefined ? [] : [limitRate(rateLimit)]),
  ];
}
