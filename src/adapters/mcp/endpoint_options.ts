/**
 * What an MCP endpoint may be told.
 *
 * @module
 */

import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import type { Selection } from "../../select/mod.ts";
import type { CorsOptions } from "../hono/cors.ts";
import type { GuardOptions } from "../hono/guard.ts";
import { defaultHeartbeatMs } from "../hono/heartbeat.ts";
import type { Authorize } from "../hono/identity.ts";
import type { ObserveOptions } from "../hono/observe.ts";
import type { RateLimitOptions } from "../hono/rate_limit.ts";
import { defaultSlotsPerPrincipal } from "../hono/stream_slots.ts";

/** Options for {@linkcode createMcpEndpoint}. */
export interface McpEndpointOptions extends GuardOptions {
  /**
   * What the server calls itself.
   *
   * @default {"plue"}
   */
  readonly name?: string;
  /**
   * The server's version.
   *
   * @default {"0.0.0"}
   */
  readonly version?: string;
  /** The server's name for people. */
  readonly title?: string;
  /** How to use the tools together, for the model. */
  readonly instructions?: string;
  /** What is served of the source, before anything that a caller may see of it. */
  readonly selection?: Selection;
  /** Decides who calls, and so what that caller sees. The same function as the HTTP handler's. */
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
   * How many tools one page of `tools/list` has. Some clients read only the first page.
   *
   * @default {1_000}
   */
  readonly pageSize?: number;
  /**
   * How long clients may keep a list, in milliseconds. Those that follow the changes are told
   * sooner.
   *
   * @default {10_000}
   */
  readonly ttlMs?: number;
  /**
   * How large a request's body may be, in bytes.
   *
   * @default {1_114_112}
   */
  readonly maxBodyBytes?: number;
  /**
   * How often a stream sends a comment, in milliseconds. Workers notice only when they write that a
   * client is gone, so there it is also how long its call runs on.
   *
   * @default {1_500 on Workers, 15_000 elsewhere}
   */
  readonly heartbeatMs?: number;
  /**
   * How many clients may follow changes of the tools at once. Further ones are refused.
   *
   * @default {1_024}
   */
  readonly maxSubscriptions?: number;
  /**
   * How many of them may be one principal's; callers without one share theirs. Without `authorize`,
   * nobody is told apart, and this does not count.
   *
   * @default {a sixteenth of maxSubscriptions}
   */
  readonly maxSubscriptionsPerPrincipal?: number;
  /**
   * How often one caller may come. Absent: as often as it likes. A batch counts 1 for each of its
   * calls.
   */
  readonly rateLimit?: RateLimitOptions;
  /** Traces, measures and logs. Absent: nothing. */
  readonly observe?: ObserveOptions;
  /**
   * Lets pages of the origins in `allowedOrigins` read the answers. Absent: browsers keep the answers
   * from them.
   */
  readonly cors?: CorsOptions | true;
  /**
   * Is told what went wrong while answering, and which tools cannot be told to MCP clients, for the
   * log. The client is told nothing of it.
   */
  onError?(error: unknown): void;
}

const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys(
    {
      name: 0,
      version: 0,
      title: 0,
      instructions: 0,
      selection: 0,
      authorize: 0,
      openExecution: 0,
      dispatcher: 0,
      dispatch: 0,
      pageSize: 0,
      ttlMs: 0,
      maxBodyBytes: 0,
      heartbeatMs: 0,
      maxSubscriptions: 0,
      maxSubscriptionsPerPrincipal: 0,
      rateLimit: 0,
      observe: 0,
      cors: 0,
      onError: 0,
      allowedHosts: 0,
      allowedOrigins: 0,
    } satisfies Record<keyof McpEndpointOptions, 0>,
  ),
);

/** Above this, a timer fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** The numbers among the options, checked. */
export interface McpLimits {
  readonly pageSize: number;
  readonly ttlMs: number;
  readonly maxBodyBytes: number;
  readonly heartbeatMs: number;
  readonly maxSubscriptions: number;
  readonly maxSubscriptionsPerPrincipal: number;
}

/**
 * Checks the options, and fills in the numbers.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function readMcpOptions(options: McpEndpointOptions): McpLimits {
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name)) {
      throw new TypeError(`Cannot create an MCP endpoint: "${name}" is not an option`);
    }
  }
  const { maxSubscriptions = 1_024 } = options;
  const limits: McpLimits = {
    pageSize: options.pageSize ?? 1_000,
    ttlMs: options.ttlMs ?? 10_000,
    // The dispatcher's own bound on arguments, and room for the request around them.
    maxBodyBytes: options.maxBodyBytes ?? 1_114_112,
    heartbeatMs: options.heartbeatMs ?? defaultHeartbeatMs(),
    maxSubscriptions,
    maxSubscriptionsPerPrincipal: options.maxSubscriptionsPerPrincipal ??
      defaultSlotsPerPrincipal(maxSubscriptions),
  };
  for (const [name, value] of Object.entries(limits)) {
    const least = name === "ttlMs" ? 0 : 1;
    if (!(Number.isSafeInteger(value) && value >= least)) {
      throw new TypeError(
        `Cannot create an MCP endpoint: ${name} must be a whole number from ${least}`,
      );
    }
  }
  if (limits.heartbeatMs > MAX_TIMER_MS) {
    throw new TypeError(
      `Cannot create an MCP endpoint: heartbeatMs must be at most ${MAX_TIMER_MS}`,
    );
  }
  return limits;
}
