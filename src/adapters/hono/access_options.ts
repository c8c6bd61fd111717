/**
 * What everything that serves tools over HTTP may be told, whatever the protocol.
 *
 * @module
 */

import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import { checkSelection, type Selection } from "../../select/mod.ts";
import {
  type Check,
  checkFlag,
  checkFunction,
  isObject,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
} from "../../tool/mod.ts";
import { checkCount, checkObject, checkTexts, having } from "./checks.ts";
import type { CorsOptions } from "./cors.ts";
import type { GuardOptions } from "./guard.ts";
import type { Authorize } from "./identity.ts";
import type { ObserveOptions } from "./observe.ts";
import type { RateLimitOptions } from "./rate_limit.ts";

/** Who may come in, how often, and what they see. */
export interface AccessOptions extends GuardOptions {
  /** What is served of the source, before anything that a caller may see of it. */
  readonly selection?: Selection;
  /** Decides who calls, and so what that caller sees. One function does for every protocol. */
  readonly authorize?: Authorize;
  /**
   * Lets callers execute although there is no `authorize`: for servers that only their own user
   * can reach.
   *
   * @default {false}
   */
  readonly openExecution?: boolean;
  /** Runs the calls. Absent: one is made of `dispatch`. */
  readonly dispatcher?: ToolDispatcher;
  /** Options for the dispatcher that is made. */
  readonly dispatch?: ToolDispatcherOptions;
  /**
   * How large a request's body may be, in bytes.
   *
   * @default {1_114_112}
   */
  readonly maxBodyBytes?: number;
  /**
   * How often a stream of events sends a comment, in milliseconds. Workers notice only when they
   * write that a client is gone, so there it is also how long its call runs on.
   *
   * @default {1_500 on Workers, 5_000 on Bun, 15_000 elsewhere}
   */
  readonly heartbeatMs?: number;
  /**
   * How often one caller may come; a turn counts 1 for each of its calls, a batch for each of its
   * requests. Absent: as often as it likes.
   */
  readonly rateLimit?: RateLimitOptions;
  /** Traces, measures and logs. Absent: nothing but `GET /metrics`. */
  readonly observe?: ObserveOptions;
  /**
   * Lets pages of the origins in `allowedOrigins` read the answers. Absent: browsers keep the answers
   * from them.
   */
  readonly cors?: CorsOptions | true;
  /**
   * Is told what was thrown while answering, by tools too unless `dispatch` has an `onError` of its
   * own, for the log. The client is told nothing of it.
   */
  onError?(error: unknown): void;
}

const checkCors: Check<true | object> = must(
  "true or an object",
  (value): value is true | Record<string, unknown> => value === true || isObject(value),
);

/** What each option must be; its type keeps the table complete. */
export const ACCESS_CHECKS: { readonly [Option in keyof AccessOptions]-?: Check } = {
  selection: (_action, value) => checkSelection(value as Selection),
  authorize: checkFunction,
  openExecution: checkFlag,
  dispatcher: having("withToolset", "a ToolDispatcher"),
  dispatch: checkObject,
  maxBodyBytes: checkCount,
  heartbeatMs: numberFrom(1, MAX_TIMEOUT_MS),
  rateLimit: checkObject,
  observe: checkObject,
  cors: checkCors,
  onError: checkFunction,
  allowedHosts: (action, value, place) =>
    value === "any" ? value : checkTexts(action, value, place),
  allowedOrigins: checkTexts,
};

/** The dispatcher's own bound on arguments, and room for what is around them. */
export const MAX_BODY_BYTES = 1_114_112;
