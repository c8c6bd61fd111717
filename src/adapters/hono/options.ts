/**
 * What the handler may be told.
 *
 * @module
 */

import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import { checkSelection, type Selection } from "../../select/mod.ts";
import {
  type Check,
  checkFlag,
  checkFunction,
  isFunction,
  isListOf,
  isObject,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  readFields,
  wholeFrom,
} from "../../tool/mod.ts";
import type { CorsOptions } from "./cors.ts";
import type { FormatService } from "./formats.ts";
import type { GuardOptions } from "./guard.ts";
import { defaultHeartbeatMs } from "./heartbeat.ts";
import type { Authorize } from "./identity.ts";
import type { ObserveOptions } from "./observe.ts";
import type { ProtectedResource } from "./protected_resource.ts";
import type { RateLimitOptions } from "./rate_limit.ts";
import { defaultSlotsPerPrincipal } from "./stream_slots.ts";

/** Options for {@linkcode createToolHandler}. */
export interface ToolHandlerOptions extends GuardOptions {
  /** What is served of the source, before anything that a caller may see of it. */
  readonly selection?: Selection;
  /** Decides who calls, and so what that caller sees. */
  readonly authorize?: Authorize;
  /**
   * Lets callers execute although there is no `authorize`: for servers that only their own user
   * can reach.
   *
   * @default {false}
   */
  readonly openExecution?: boolean;
  /**
   * Lets every caller ask why a tool is hidden, and so learn that it exists. With `authorize`, a
   * caller's own `explain` says so.
   *
   * @default {false}
   */
  readonly openExplain?: boolean;
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
   * How many clients may follow `GET /events` at once. Further ones are answered 503.
   *
   * @default {1_024}
   */
  readonly maxEventStreams?: number;
  /**
   * How many of them may be one principal's; callers without one share theirs. Without `authorize`,
   * nobody is told apart, and this does not count.
   *
   * @default {a sixteenth of maxEventStreams}
   */
  readonly maxEventStreamsPerPrincipal?: number;
  /**
   * The providers' formats, for `GET /tools?format=…`, `POST /dispatch/:target` and
   * `GET /openapi.json`: what `serveFormats` makes. Absent: none are served.
   */
  readonly formats?: FormatService;
  /** Traces, measures and logs. Absent: nothing but `GET /metrics`. */
  readonly observe?: ObserveOptions;
  /** How often one caller may come. Absent: as often as it likes. */
  readonly rateLimit?: RateLimitOptions;
  /**
   * Lets pages of the origins in `allowedOrigins` read the answers. Absent: browsers keep the answers
   * from them.
   */
  readonly cors?: CorsOptions | true;
  /**
   * What clients are told of how to get a token (RFC 9728), at
   * `/.well-known/oauth-protected-resource`. Serve the handler at the root of its host then.
   */
  readonly protectedResource?: ProtectedResource;
  /**
   * Is told what was thrown while answering, by tools too unless `dispatch` has an `onError` of its
   * own, for the log. The client is told nothing of it.
   */
  onError?(error: unknown): void;
}

const checkObject: Check<Record<string, unknown>> = must("an object", isObject);
const checkTexts: Check<readonly string[]> = must(
  "a list of strings",
  (value): value is readonly string[] =>
    isListOf(value, (item): item is string => typeof item === "string"),
);
const checkDispatcher: Check<object> = must(
  "a ToolDispatcher",
  (value): value is Record<string, unknown> => isObject(value) && isFunction(value["withToolset"]),
);
const checkCors: Check<true | object> = must(
  "true or an object",
  (value): value is true | Record<string, unknown> => value === true || isObject(value),
);

/** What each option must be; `satisfies` keeps the table complete. */
const CHECKS = {
  selection: (_action, value) => checkSelection(value as Selection),
  authorize: checkFunction,
  openExecution: checkFlag,
  openExplain: checkFlag,
  dispatcher: checkDispatcher,
  dispatch: checkObject,
  maxBodyBytes: wholeFrom(1),
  heartbeatMs: numberFrom(1, MAX_TIMEOUT_MS),
  maxEventStreams: wholeFrom(1),
  maxEventStreamsPerPrincipal: wholeFrom(1),
  formats: checkObject,
  observe: checkObject,
  rateLimit: checkObject,
  cors: checkCors,
  protectedResource: checkObject,
  onError: checkFunction,
  allowedHosts: (action, value, place) =>
    value === "any" ? value : checkTexts(action, value, place),
  allowedOrigins: checkTexts,
} satisfies { readonly [Option in keyof ToolHandlerOptions]-?: Check };

/** The dispatcher's own bound on arguments, and room for the envelope. */
const MAX_BODY_BYTES = 1_114_112;

/** The numbers among the options, checked. */
export interface HandlerLimits {
  readonly maxBodyBytes: number;
  readonly heartbeatMs: number;
  readonly maxEventStreams: number;
  readonly maxEventStreamsPerPrincipal: number;
}

/**
 * Checks the options, and fills in the numbers.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function readOptions(options: ToolHandlerOptions): HandlerLimits {
  readFields("create a tool handler", { ...options }, CHECKS, (name) => `its option ${name}`);
  const { maxEventStreams = 1_024 } = options;
  return {
    maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
    heartbeatMs: options.heartbeatMs ?? defaultHeartbeatMs(),
    maxEventStreams,
    maxEventStreamsPerPrincipal: options.maxEventStreamsPerPrincipal ??
      defaultSlotsPerPrincipal(maxEventStreams),
  };
}
