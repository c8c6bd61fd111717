// A `fetch` that records the requests and returns prepared responses, and documents for it.

import type { HttpFetch, HttpRequest, HttpResponse } from "../../../src/adapters/openapi/mod.ts";
import store from "./pet_store.json" with { type: "json" };

/** A request that was made. */
export interface Asked {
  readonly url: string;
  readonly request: HttpRequest;
}

/** A response with a text, in one chunk. */
export function respond(
  status: number,
  text: string,
  type: string | undefined = "application/json",
): HttpResponse {
  return respondWith(status, text === "" ? [] : [new TextEncoder().encode(text)], type);
}

/** A response in chunks; `onCancel` is called if it is not read to its end. */
export function respondWith(
  status: number,
  chunks: readonly Uint8Array[],
  type: string | undefined,
  onCancel: () => void = () => {},
): HttpResponse {
  const left = [...chunks];
  return {
    status,
    headers: { get: (name) => name === "content-type" ? type ?? null : null },
    body: {
      getReader: () => ({
        read: () => {
          const value = left.shift();
          return Promise.resolve(value === undefined ? { done: true } : { done: false, value });
        },
        cancel: () => Promise.resolve(onCancel()),
      }),
    },
  };
}

/** A `fetch` that gives `answer` to everything. */
export function fakeApi(
  answer: (asked: Asked) => HttpResponse | Promise<HttpResponse> = () => respond(204, ""),
): { readonly fetch: HttpFetch; readonly asked: Asked[] } {
  const asked: Asked[] = [];
  return {
    asked,
    fetch: (url, request) => {
      asked.push({ url, request });
      return Promise.resolve(answer({ url, request }));
    },
  };
}

/** Returns a document with one operation. */
export function api(
  path: string,
  method: string,
  operation: object,
  rest: object = {},
): Record<string, unknown> {
  return { openapi: "3.1.0", paths: { [path]: { [method]: operation } }, ...rest };
}

/** Returns a copy of an API with the hard cases of OpenAPI 3.0. */
export function petStore(): Record<string, unknown> {
  return structuredClone(store);
}
