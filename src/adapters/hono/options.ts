/**
 * What the handler may be told.
 *
 * @module
 */

import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import type { Selection } from "../../select/mod.ts";
import type { CorsOptions } from "./cors.ts";
import type { FormatService } from "./formats.ts";
import type { GuardOptions } from "./guard.ts";
import { defaultHeartbeatMs } from "./heartbeat.ts";
import type { Authorize } from "./identity.ts";
import type { ProtectedResource } from "./protected_resource.ts";
import type { RateLimitOptions } from "./rate_limit.ts";

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
   * @default {1_500 on Workers, 15_000 elsewhere}
   */
  readonly heartbeatMs?: number;
  /**
   * How many clients may follow `GET /events` at once. Further ones are answered 503.
   *
   * @default {1_024}
   */
  readonly maxEventStreams?: number;
  /**
   * The providers' formats, for `GET /tools?format=…`, `POST /dispatch/:target` and
   * `GET /openapi.json`: what `serveFormats` makes. Absent: none are served.
   */
  readonly formats?: FormatService;
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

const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys(
    {
      selection: 0,
      authorize: 0,
      openExecution: 0,
      openExplain: 0,
      dispatcher: 0,
      dispatch: 0,
      maxBodyBytes: 0,
      heartbeatMs: 0,
      maxEventStreams: 0,
      formats: 0,
      rateLimit: 0,
      cors: 0,
      protectedResource: 0,
      onError: 0,
      allowedHosts: 0,
      allowedOrigins: 0,
    } satisfies Record<keyof ToolHandlerOptions, 0>,
  ),
);

/** The dispatcher's own bound on arguments, and room for the envelope. */
const MAX_BODY_BYTES = 1_114_112;

/** Above this, a timer fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** The numbers among the options, checked. */
export interface HandlerLimits {
  readonly maxBodyBytes: number;
  readonly heartbeatMs: number;
  readonly maxEventStreams: number;
}

/**
 * Checks the options, and fills in the numbers.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function readOptions(options: ToolHandlerOptions): HandlerLimits {
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name)) {
      throw new TypeError(`Cannot create a tool handler: "${name}" is not an option`);
    }
  }
  const limits: HandlerLimits = {
    maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
    heartbeatMs: options.heartbeatMs ?? defaultHeartbeatMs(),
    maxEventStreams: options.maxEventStreams ?? 1_024,
  };
  for (const [name, value] of Object.entries(limits)) {
    if (!(Number.isSafeInteger(value) && value > 0)) {
      throw new TypeError(`Cannot create a tool handler: ${name} must be a whole number above 0`);
    }
  }
  if (limits.heartbeatMs > MAX_TIMER_MS) {
    throw new TypeError(
      `Cannot create a tool handler: heartbeatMs must be at most ${MAX_TIMER_MS}`,
    );
  }
  return limits;
}
