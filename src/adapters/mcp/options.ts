/**
 * The options of an MCP endpoint.
 *
 * @module
 */

import type { McpServer } from "@modelcontextprotocol/server";
import type { Toolset } from "../../select/mod.ts";
import {
  type Check,
  checkFunction,
  checkText,
  checkWord,
  isFunction,
  must,
  wholeFrom,
} from "../../tool/mod.ts";
import { type Caller, checkCount, HTTP_CHECKS, type HttpOptions } from "../http/mod.ts";

/** The request that an extension serves. */
export interface McpExtensionContext {
  /** Who calls, as `authorize` answered. */
  readonly caller: Caller;
  readonly request: Request;
}

/** Options for {@linkcode createMcpEndpoint}. */
export interface McpEndpointOptions extends HttpOptions {
  /**
   * The server's name for programs.
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
   * Registers prompts, resources, completion and methods of your own on the SDK's server, which is
   * made for each request that is not for tools. It decides what the caller gets: a prompt that is
   * not registered does not exist for this request.
   *
   * An error, thrown or rejected, is logged and answered with status 500.
   */
  extend?(server: McpServer, context: McpExtensionContext): void | Promise<void>;
  /**
   * What clients are shown: `all` of the caller's tools, or the `bridge` to them: three tools with
   * which a model finds, reads and calls the others. A function makes a bridge with options:
   * `(toolset) => createToolBridge(toolset, { pinned })`.
   *
   * @default {"all"}
   */
  readonly tools?: "all" | "bridge" | ((toolset: Toolset) => Toolset);
  /**
   * How many tools one page of `tools/list` has. Some clients read only the first page.
   *
   * @default {1_000}
   */
  readonly pageSize?: number;
  /**
   * How long clients may keep a list, in milliseconds. Clients that follow the changes learn of them
   * earlier.
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
   * callers are not told apart, and this does not count.
   *
   * @default {a sixteenth of maxSubscriptions}
   */
  readonly maxSubscriptionsPerPrincipal?: number;
}

/** What each option must be; its type keeps the table complete. */
export const MCP_CHECKS: { readonly [Option in keyof McpEndpointOptions]-?: Check } = {
  ...HTTP_CHECKS,
  name: checkWord,
  version: checkWord,
  title: checkText,
  instructions: checkText,
  extend: checkFunction,
  tools: must(
    '"all", "bridge" or a function',
    (value): value is NonNullable<McpEndpointOptions["tools"]> =>
      value === "all" || value === "bridge" || isFunction(value),
  ),
  pageSize: checkCount,
  ttlMs: wholeFrom(0),
  maxSubscriptions: checkCount,
  maxSubscriptionsPerPrincipal: checkCount,
};
