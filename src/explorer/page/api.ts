/**
 * Requests to the service that sent this page, as the caller whose token was pasted. The token is
 * kept in this module's memory and nowhere else.
 *
 * @module
 */

import { batch, signal } from "@preact/signals";
import { createParser } from "eventsource-parser";
import { isObject, type Issue } from "../../tool/mod.ts";

/** Where the service is: this page's own address, with a slash at its end. */
export const BASE: string = location.origin + location.pathname.replace(/\/*$/, "/");

/** The token to send; empty for none. */
export const token = signal("");

/** How often a token was given. */
export const sessions = signal(0);

/**
 * Whether the service has refused a request because it does not know the caller. Then nothing is
 * sent until there is another token: services count wrong ones.
 */
export const isRefused = signal(false);

/** Calls the service with another token from now on. */
export function signIn(given: string): void {
  batch(() => {
    isRefused.value = false;
    token.value = given;
    sessions.value++;
  });
}

/** A problem that the service answered. */
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

  /** What is wrong with the arguments, if that is why. */
  get issues(): readonly Issue[] {
    return Array.isArray(this.body["issues"]) ? (this.body["issues"] as readonly Issue[]) : [];
  }
}

/** What a request may say besides its path. */
export interface RequestOptions {
  readonly method?: string;
  /** Is sent as JSON. */
  readonly body?: unknown;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/**
 * Sends a request.
 *
 * @param path The path below the service, without a slash at its start.
 * @throws {ApiError} If the service answers with a problem.
 */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = "GET", body, accept, signal: abort } = options;
  if (isRefused.peek()) throw new ApiError(401, { detail: "The service asks who you are" });
  const response = await fetch(BASE + path, {
    method,
    headers: {
      ...(accept === undefined ? {} : { accept }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token.peek() === "" ? {} : { authorization: `Bearer ${token.peek()}` }),
    },
    credentials: "omit",
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(abort === undefined ? {} : { signal: abort }),
  });
  if (response.status === 401) isRefused.value = true;
  if (response.ok) return response;
  const problem: unknown = await response.json().catch(() => ({}));
  throw new ApiError(response.status, isObject(problem) ? problem : {});
}

/** Sends a request, and reads the answer as JSON. The caller says what it is. */
export async function ask<Answer>(path: string, options?: RequestOptions): Promise<Answer> {
  return (await (await send(path, options)).json()) as Answer;
}

/** An event of a stream: its name, and its data, which is JSON. */
export interface StreamEvent {
  readonly event: string;
  readonly data: unknown;
}

/** The events of a response, as they come: those that came together are one list. */
export async function* eventsOf(response: Response): AsyncGenerator<readonly StreamEvent[]> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let waiting: StreamEvent[] = [];
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
      const ready = waiting;
      waiting = [];
      if (ready.length > 0) yield ready;
    }
  } finally {
    void reader.cancel();
  }
}

/** A name for a call. `crypto.randomUUID` is missing on pages that came over plain HTTP. */
export function newCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
