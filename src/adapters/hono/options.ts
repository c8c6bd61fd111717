/**
 * What the handler may be told.
 *
 * @module
 */

import { type Check, checkFlag } from "../../tool/mod.ts";
import { ACCESS_CHECKS, type AccessOptions, MAX_BODY_BYTES } from "./access_options.ts";
import { checkCount, checkObject, checkOptions } from "./checks.ts";
import type { FormatService } from "./formats.ts";
import { defaultHeartbeatMs } from "./heartbeat.ts";
import type { ProtectedResource } from "./protected_resource.ts";
import { defaultSlotsPerPrincipal } from "./stream_slots.ts";

/** Options for {@linkcode createToolHandler}. */
export interface ToolHandlerOptions extends AccessOptions {
  /**
   * Lets every caller ask why a tool is hidden, and so learn that it exists. With `authorize`, a
   * caller's own `explain` says so.
   *
   * @default {false}
   */
  readonly openExplain?: boolean;
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
  /**
   * What clients are told of how to get a token (RFC 9728), at
   * `/.well-known/oauth-protected-resource`. Serve the handler at the root of its host then.
   */
  readonly protectedResource?: ProtectedResource;
}

/** What each option must be; `satisfies` keeps the table complete. */
const CHECKS = {
  ...ACCESS_CHECKS,
  openExplain: checkFlag,
  maxEventStreams: checkCount,
  maxEventStreamsPerPrincipal: checkCount,
  formats: checkObject,
  protectedResource: checkObject,
} satisfies { readonly [Option in keyof ToolHandlerOptions]-?: Check };

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
  checkOptions("create a tool handler", options, CHECKS);
  const { maxEventStreams = 1_024 } = options;
  return {
    maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
    heartbeatMs: options.heartbeatMs ?? defaultHeartbeatMs(),
    maxEventStreams,
    maxEventStreamsPerPrincipal: options.maxEventStreamsPerPrincipal ??
      defaultSlotsPerPrincipal(maxEventStreams),
  };
}
