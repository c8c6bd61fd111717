/**
 * One request's caller, and what the parts of the endpoint share to answer it.
 *
 * @module
 */

import type { ToolDispatcher } from "../../execute/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { Exchange } from "../hono/exchange.ts";
import type { Caller } from "../hono/identity.ts";
import type { CallSpan, ObservedCall } from "../hono/telemetry.ts";
import type { Reading } from "./reading.ts";
import type { McpEra } from "./request.ts";
import type { SessionCalls } from "./session_calls.ts";
import type { McpToolList } from "./tool_list.ts";

/** What the parts of the endpoint know of the request that is answered. */
export interface McpVisit {
  readonly caller: Caller;
  /** What is found out about the request while it is answered. */
  readonly exchange: Exchange;
  /** What the caller sees. */
  readonly toolset: Toolset;
  /** Dispatches to what the caller sees. */
  readonly dispatcher: ToolDispatcher;
  /** The tools as this client's revision of MCP has them. */
  list(era: McpEra): McpToolList;
  /** Why nobody may execute here, if so. */
  readonly executionClosed: boolean;
  /** The client's session; only clients before revision 2026-07-28 have one. */
  readonly session: string | undefined;
  /** The calls that run, to be found when a client cancels one by another request. */
  readonly calls: SessionCalls;
  /** The request's headers: they may name the trace that it belongs to. */
  readonly headers: Headers;
  /** How fast the client reads its answer. */
  readonly reading: Reading;
  /** Begins to observe a call, if calls are observed. Must not throw. */
  observe(call: ObservedCall): CallSpan;
  /** Tells the endpoint's owner what went wrong. Does not throw. */
  report(error: unknown): void;
  /** Lets work go on after its response. */
  keepAlive(work: Promise<unknown>): void;
}

/** What a session's name looks like: it is only ever made here. */
const SESSION = /^[0-9a-f-]{36}$/;

/** The session that a request says it belongs to. */
export function sessionOf(request: Request): string | undefined {
  const session = request.headers.get("mcp-session-id");
  return session !== null && SESSION.test(session) ? session : undefined;
}

/**
 * Gives a client that begins a session a name for it. Nothing is kept of a session: the name only
 * tells apart the requests of two clients, which both count from 0.
 */
export function withSession(response: Response): Response {
  const { body, status, statusText } = response;
  const headers = new Headers(response.headers);
  headers.set("mcp-session-id", crypto.randomUUID());
  return new Response(body, { status, statusText, headers });
}
