/**
 * The options that every way of serving tools over HTTP has.
 *
 * @module
 */

import type { CallTasks } from "../../execute/durable/mod.ts";
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

/** Who may call, how often, and what they see. */
export interface HttpOptions extends GuardOptions {
  /** Which of the source's tools are served. Each caller sees these at most. */
  readonly selection?: Selection;
  /** Decides who calls, and so what that caller sees. One function works for every protocol. */
  readonly authorize?: Authorize;
  /**
   * Lets callers execute tools without `authorize`: for servers that only their own user can reach.
   *
   * @default {false}
   */
  readonly openExecution?: boolean;
  /** Runs the calls. @default {a new one with the options in `dispatch`} */
  readonly dispatcher?: ToolDispatcher;
  /** Options for the dispatcher that is made if there is no `dispatcher`. */
  readonly dispatch?: ToolDispatcherOptions;
  /**
   * Runs calls as tasks, which outlive their requests: `callTasks` of `@plue/tools/calls`. Absent:
   * every call runs in its request.
   */
  readonly tasks?: CallTasks;
  /**
   * After so many milliseconds a call becomes a task, as far as its tool allows that. Absent: only
   * where the client asks for it (`Prefer: respond-async`), or the tool's `execution` is `task`.
   */
  readonly taskAfterMs?: number;
  /**
   * How large a request's body may be, in bytes.
   *
   * @default {1_114_112}
   */
  readonly maxBodyBytes?: number;
  /**
   * How long a request's body may take to come, in milliseconds. Then it is answered 408, and its
   * connection is closed. Headers and idle connections are the runtime's own to bound.
   *
   * @default {30_000}
   */
  readonly bodyTimeoutMs?: number;
  /**
   * How often a stream of events sends a comment, in milliseconds. Workers notice only when they
   * write that a client has left, so there its call may run on for this long.
   *
   * @default {1_500 on Workers, 5_000 on Bun, 15_000 elsewhere}
   */
  readonly heartbeatMs?: number;
  /**
   * How many requests one caller may make. A turn counts 1 for each of its calls, a batch 1 for each
   * of its requests. Absent: no limit.
   */
  readonly rateLimit?: RateLimitOptions;
  /** Traces, measures and logs requests. `GET /metrics` works without it. */
  readonly observe?: ObserveOptions;
  /**
   * Lets pages of the origins in `allowedOrigins` read the responses. Absent: browsers do not let
   * them.
   */
  readonly cors?: CorsOptions | true;
  /**
   * Is called with what was thrown while answering, for the log; by tools too, unless `dispatch` has
   * an `onError` of its own. The client learns nothing of it.
   */
  onError?(error: unknown): void;
}

const checkCors: Check<true | object> = must(
  "true or an object",
  (value): value is true | Record<string, unknown> => value === true || isObject(value),
);

/** What each option must be; its type keeps the table complete. */
export const HTTP_CHECKS: { readonly [Option in keyof HttpOptions]-?: Check } = {
  selection: (_action, value) => checkSelection(value as Selection),
  authorize: checkFunction,
  openExecution: checkFlag,
  dispatcher: having("withToolset", "a ToolDispatcher"),
  dispatch: checkObject,
  tasks: having("start", "what callTasks() gives"),
  taskAfterMs: numberFrom(0, MAX_TIMEOUT_MS),
  maxBodyBytes: checkCount,
  bodyTimeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
  heartbeatMs: numberFrom(1, MAX_TIMEOUT_MS),
  rateLimit: checkObject,
  observe: checkObject,
  cors: checkCors,
  onError: checkFunction,
  allowedHosts: (action, value, place) =>
    value === "any" ? value : checkTexts(action, value, place),
  allowedOrigins: checkTexts,
};
