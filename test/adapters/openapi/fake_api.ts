// A `fetch` that records requests and returns prepared responses, and documents of such APIs.

import type { HttpFetch } from "../../../src/adapters/openapi/mod.ts";
import store from "./pet_store.json" with { type: "json" };

/** A request that was made. */
export type SentRequest = { readonly url: string; readonly request: Parameters<HttpFetch>[1] };

/** A response with a text, in one chunk. */
export function respond(
  status: number,
  text: string,
  type: string | undefined = "application/json",
): Response {
  return respondWith(status, text === "" ? [] : [new TextEncoder().encode(text)], type);
}

/** A response in chunks. `onCancel` is called if the response is not read to its end. */
export function respondWith(
  status: number,
  chunks: readonly Uint8Array[],
  type: string,
  onCancel: () => void = () => {},
): Response {
  const left = [...chunks];
  const body = new ReadableStream({
    pull(stream) {
      const chunk = left.shift();
      if (chunk === undefined) stream.close();
      else stream.enqueue(chunk);
    },
    cancel: onCancel,
  }, { highWaterMark: 0 });
  const headers = { "content-type": type };
  return new Response(status === 204 ? null : body, { status, headers });
}

/** A `fetch` that returns `answer` for everything. */
export function fakeApi(
  answer: (sent: SentRequest) => Response | Promise<Response> = () => respond(204, ""),
): { readonly fetch: HttpFetch; readonly requests: SentRequest[] } {
  const requests: SentRequest[] = [];
  return {
    requests,
    fetch: (url, request) => {
      requests.push({ url, request });
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
