/** Requests to the service, with the user's token, which is only in this module's memory. */

import { batch, signal } from "@preact/signals";
import { createParser } from "eventsource-parser";
import type { HeldTool } from "../../formats/import_options.ts";
import { isObject, type Issue } from "../../tool/mod.ts";

/** The URL of the service: this page's own address, with a trailing slash. */
export const BASE: string = location.origin + location.pathname.replace(/\/*$/, "/");

/** The token to send, or an empty string. */
export const token = signal("");

export const sessions = signal(0);

/**
 * True if the service has rejected the token. Then no request is sent until another token is
 * entered, because services count invalid tokens.
 */
export const isRefused = signal(false);

export function signIn(entered: string): void {
  batch(() => {
    isRefused.value = false;
    token.value = entered;
    sessions.value++;
  });
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(typeof body["detail"] === "string" ? body["detail"] : `The service answered ${status}`);
    this.status = status;
    this.code = typeof body["code"] === "string" ? body["code"] : String(status);
    this.body = body;
  }

  get issues(): readonly Issue[] {
    return Array.isArray(this.body["issues"]) ? (this.body["issues"] as readonly Issue[]) : [];
  }
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

interface RequestOptions {
  readonly method?: string;
  readonly body?: unknown;
  readonly accept?: string;
  /** True to let the call outlive its request, if the service has tasks. */
  readonly isTask?: boolean;
  readonly signal?: AbortSignal;
}

/** Sends a request. @param path The path below the service, without a slash at its start. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = "GET", body, accept, isTask = false, signal = null } = options;
  if (isRefused.peek()) throw new ApiError(401, { detail: "The service requires a token" });
  const response = await fetch(BASE + path, {
    ...{ method, signal, credentials: "omit" },
    headers: {
      ...(accept === undefined ? {} : { accept }),
      ...(isTask ? { prefer: "respond-async" } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token.peek() === "" ? {} : { authorization: `Bearer ${token.peek()}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.status === 401) isRefused.value = true;
  if (response.ok) return response;
  const problem: unknown = await response.json().catch(() => ({}));
  throw new ApiError(response.status, isObject(problem) ? problem : {});
}

/** Sends a request, and parses the response as JSON. The type parameter is not verified. */
export async function ask<Answer>(path: string, options?: RequestOptions): Promise<Answer> {
  return (await (await send(path, options)).json()) as Answer;
}

export interface StreamEvent {
  readonly event: string;
  readonly data: unknown;
}

/** Yields the events of a response as they arrive, in lists of events from the same chunk. */
export async function* eventsOf(response: Response): AsyncGenerator<readonly StreamEvent[]> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  const waiting: StreamEvent[] = [];
  const parser = createParser({
    onEvent: ({ event = "message", data }) => {
      waiting.push({ event, data: JSON.parse(data) as unknown });
    },
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
      if (waiting.length > 0) yield waiting.splice(0);
    }
  } finally {
    void reader.cancel();
  }
}

/** Creates an id for a call. Pages over plain HTTP have no `crypto.randomUUID`. */
export function newCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The state of a source of a gateway, for operators. */
export interface SourceStatus {
  readonly name: string;
  readonly tenant?: string;
  /** The kind of the source, and its host, program or file. */
  readonly from: string;
  readonly state: "ready" | "unavailable";
  /** The time at which the state began, in milliseconds since 1970. */
  readonly since: number;
  /** The reason why the source is unavailable. */
  readonly reason?: string;
  readonly tools: number;
  /** The tools that the pins hide, without the placeholders of the registry. */
  readonly held: readonly Omit<HeldTool, "tool">[];
  /** Problems that do not stop the source, such as a rejected tool. */
  readonly problems: readonly string[];
}

/** A source as the page of sources shows it to one caller. */
export interface ListedSource extends SourceStatus {
  /** True if the caller may approve tools. */
  readonly mayApprove: boolean;
}
