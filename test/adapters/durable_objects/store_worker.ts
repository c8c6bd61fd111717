/** A worker that makes the operations of its requests on the store: `["get", "a.b.c"]`. */

import type { CallStore } from "@plue/tools/calls";
import { type CallStoreNamespace, durableObjectStore } from "@plue/tools/durable-objects";
import { fromBytes, toBytes } from "./bytes.ts";

export { Calls } from "./objects.ts";

export default {
  async fetch(request: Request, env: { readonly CALLS: CallStoreNamespace }): Promise<Response> {
    if (request.method === "GET") return new Response("ready");
    const [operation, ...values] = await request.json() as [keyof CallStore, ...unknown[]];
    const store = durableObjectStore(env.CALLS) as unknown as Record<
      string,
      (...values: unknown[]) => Promise<unknown>
    >;
    try {
      const result = await store[operation]?.(...values.map(toBytes));
      return new Response(JSON.stringify([result ?? null], fromBytes));
    } catch (error) {
      return new Response(`${error}`, { status: 503 });
    }
  },
};
