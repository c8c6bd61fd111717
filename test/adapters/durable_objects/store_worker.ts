/**
 * A worker with the objects of a store, which makes the operations of its requests on the store:
 * `["get", "a.b.c"]`.
 */

import { DurableObject } from "cloudflare:workers";
import type { CallStore } from "@plue/tools/calls";
import * as objects from "@plue/tools/durable-objects";
import { fromBytes, toBytes } from "./bytes.ts";

export class Calls extends objects.callStoreObject(DurableObject) {
  /** Deletes a table, so that further calls throw. */
  break(): void {
    this.ctx.storage.sql.exec("drop table entries");
  }
}

export default {
  async fetch(
    request: Request,
    env: { readonly CALLS: objects.CallStoreNamespace },
  ): Promise<Response> {
    if (request.method === "GET") return new Response("ready");
    const [operation, ...values] = await request.json() as [keyof CallStore, ...unknown[]];
    const store = objects.durableObjectStore(env.CALLS) as unknown as Record<
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
