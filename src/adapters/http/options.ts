/** The options of a server for every protocol, and the checks of options. */

import type { CallTasks } from "../../execute/durable/mod.ts";
import type { Dispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import { checkSelection, type Selection } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { attemptOr, isFunction, isObject } from "../../tool/mod.ts";
import type { Authorize } from "./identity.ts";

export const checkObject: check.Check<Record<string, unknown>> = check.createCheck(
  "an object",
  isObject,
);

export const checkCount: check.Check<number> = check.wholeFrom(1);

export function having(method: string, name: string): check.Check<Record<string, unknown>> {
  return check.createCheck(
    name,
    (value): value is Record<string, unknown> => isObject(value) && isFunction(value[method]),
  );
}

export function parseUrl(text: string): URL | undefined {
  return attemptOr(undefined, () => new URL(text));
}

export function checkOptions<Checks extends { readonly [option: string]: check.Check }>(
  action: string,
  options: object,
  checks: Checks,
): check.ReadFields<Checks> {
  return check.readFields(action, options, checks, (name) => `the option ${name}`);
}

/** The hosts and origins that requests may name. */
export interface GuardOptions {
  /**
   * The host names of this server, without a port. Use `"any"` if a proxy checks the host names.
   * Requests for other hosts are rejected.
   *
   * @default {["localhost", "127.0.0.1", "[::1]"]}
   */
  readonly allowedHosts?: readonly string[] | "any";
  /** Origins of other web pages that may call, such as `https://app.example.com`. @default {[]} */
  readonly allowedOrigins?: readonly string[];
}

/** The options of a server for every protocol. */
export interface ServerOptions extends GuardOptions {
  /** Selects the tools of the source that are served. */
  readonly selection?: Selection;
  /** Identifies the caller, and so determines its tools. */
  readonly authorize?: Authorize;
  /**
   * True if callers may execute tools without `authorize`. For servers that only one user can reach.
   *
   * @default {false}
   */
  readonly openExecution?: boolean;
  /**
   * Runs the calls.
   *
   * @default {a new one with the options in `dispatch`: a `ToolDispatcher` in `createToolHandler` and
   * `createMcpEndpoint`, a `Dispatcher` without layers in `composeToolHandler`}
   */
  readonly dispatcher?: Dispatcher;
  /** Options for the new dispatcher; an error together with `dispatcher`. */
  readonly dispatch?: ToolDispatcherOptions;
  /** Runs calls as tasks, which outlive their requests: `callTasks` of `@plue/tools/calls`. */
  readonly tasks?: CallTasks;
  /**
   * The time after which a call becomes a task, in milliseconds, if the tool allows tasks. Without it,
   * a call becomes a task only by `Prefer: respond-async`, or if the tool's `execution` is `task`.
   */
  readonly taskAfterMs?: number;
  /** The maximum size of a request's body, in bytes. @default {1_114_112} */
  readonly maxBodyBytes?: number;
  /**
   * The time within which a request's body must arrive, in milliseconds. Later bodies are rejected
   * (408). The runtime has its own limits for headers and idle connections.
   *
   * @default {30_000}
   */
  readonly bodyTimeoutMs?: number;
  /**
   * The interval between comments in a stream of events, in milliseconds. On Cloudflare Workers,
   * only a write reveals that a client has left, so a call may run on for up to this long.
   *
   * @default {1_500 on Workers, 5_000 on Bun, 15_000 elsewhere}
   */
  readonly heartbeatMs?: number;
  /** The maximum number of streams of changes of tools or tasks. @default {1_024} */
  readonly maxStreams?: number;
  /**
   * The maximum number of streams of one principal. All callers without a principal count as one.
   * The option has no effect without `authorize`.
   *
   * @default {a sixteenth of maxStreams}
   */
  readonly maxStreamsPerPrincipal?: number;
  /** Receives errors of responses, and of tools unless `dispatch` has an `onError`, for a log. */
  onError?(error: unknown): void;
}

export const SERVER_CHECKS: { readonly [Option in keyof ServerOptions]-?: check.Check } = {
  selection: (_action, value) => checkSelection(value as Selection),
  authorize: check.checkFunction,
  openExecution: check.checkFlag,
  dispatcher: having("withToolset", "a dispatcher"),
  dispatch: checkObject,
  tasks: having("start", "the result of callTasks()"),
  taskAfterMs: check.numberFrom(0, check.MAX_TIMEOUT_MS),
  maxBodyBytes: checkCount,
  bodyTimeoutMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
  heartbeatMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
  maxStreams: checkCount,
  maxStreamsPerPrincipal: checkCount,
  onError: check.checkFunction,
  allowedHosts: (action, value, place) =>
    value === "any" ? value : check.checkTexts(action, value, place),
  allowedOrigins: check.checkTexts,
};
