/**
 * What an MCP endpoint may be told.
 *
 * @module
 */

import { type Check, checkText, checkWord, readFields, wholeFrom } from "../../tool/mod.ts";
import { ACCESS_CHECKS, type AccessOptions, MAX_BODY_BYTES } from "../hono/access_options.ts";
import { defaultHeartbeatMs } from "../hono/heartbeat.ts";
import { defaultSlotsPerPrincipal } from "../hono/stream_slots.ts";

/** Options for {@linkcode createMcpEndpoint}. */
export interface McpEndpointOptions extends AccessOptions {
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
}

/** What each option must be; `satisfies` keeps the table complete. */
const CHECKS = {
  ...ACCESS_CHECKS,
  name: checkWord,
  version: checkWord,
  title: checkText,
  instructions: checkText,
  pageSize: wholeFrom(1),
  ttlMs: wholeFrom(0),
  maxSubscriptions: wholeFrom(1),
  maxSubscriptionsPerPrincipal: wholeFrom(1),
} satisfies { readonly [Option in keyof McpEndpointOptions]-?: Check };

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
 * @throws {RangeError} If a number is out of range.
 */
export function readMcpOptions(options: McpEndpointOptions): McpLimits {
  readFields("create an MCP endpoint", { ...options }, CHECKS, (name) => `its option ${name}`);
  const { maxSubscriptions = 1_024 } = options;
  return {
    pageSize: options.pageSize ?? 1_000,
    ttlMs: options.ttlMs ?? 10_000,
    maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
    heartbeatMs: options.heartbeatMs ?? defaultHeartbeatMs(),
    maxSubscriptions,
    maxSubscriptionsPerPrincipal: options.maxSubscriptionsPerPrincipal ??
      defaultSlotsPerPrincipal(maxSubscriptions),
  };
}
