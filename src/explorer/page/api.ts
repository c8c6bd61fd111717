/**
 * Requests to the service of this page, with the token that the user entered. The token is stored
 * only in this module's memory.
 *
 * @module
 */

import { batch, signal } from "@preact/signals";
import { createParser } from "eventsource-parser";
import { isObject, type Issue } from "../../tool/mod.ts";

/** The URL of the service: this page's own address, with a trailing slash. */
export const BASE: string = location.origin + location.pathname.replace(/\/*$/, "/");

/** The token to send, or an empty string. */
export const token = signal("");

/** The number of tokens that were entered. */
export const sessions = signal(0);

/**
 * True if the service has rejected the token. Then no request is sent until another token is
 * entered, because services count invalid tokens.
 */
export const isRefused = signal(false);

/** Sets the token for all further requests. */
export function signIn(given: string): void {
  batch(() => {
    isRefused.value = false;
    token.value = given;
    sessions.value++;
  });
}

/** A problem response of the service. */
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

  /** The issues with the arguments, if they caused the problem. */
  get issues(): readonly Issue[] {
    return Array.isArray(this.body["issues"]) ? (this.body["issues"] as readonly Issue[]) : [];
  }
}

/** Returns the message of an error. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Options of a request. */
export interface RequestOptions {
  readonly method?: string;
  /** A value to send as JSON. */
  readonly body?: unknown;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/**
 * Sends a request.
 *
 * @param path The path below the service, without a slash at its start.
 * @throws {ApiError} If the service returns a problem.
 */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = "GET", body, accept, signal: abort } = options;
  if (isRefused.peek()) throw new ApiError(401, { detail: "The service requires a token" });
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

/** Sends a request, and parses the response as JSON. The type parameter is not verified. */
export async function ask<Answer>(path: string, options?: RequestOptions): Promise<Answer> {
  return (await (await send(path, options)).json()) as Answer;
}

/** An event of a stream: its name and its JSON data. */
export interface StreamEvent {
  readonly event: string;
  readonly data: unknown;
}

/** Yields the events of a response as they arrive, in lists of events from the same chunk. */
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

/** Creates an id for a call. `crypto.randomUUID` does not exist on pages served over plain HTTP. */
export function newCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
