/** A worker that measures its Durable Objects. */

import { DurableObject } from "cloudflare:workers";
import {
  type CallStoreNamespace,
  callStoreObject,
  durableObjectStore,
} from "../../src/adapters/durable_objects/mod.ts";
import { operate } from "./operate.ts";

export class Calls extends callStoreObject(DurableObject) {}

export default {
  async fetch(request: Request, env: { readonly CALLS: CallStoreNamespace }): Promise<Response> {
    if (request.method === "GET") return new Response("ready");
    return Response.json(await operate(durableObjectStore(env.CALLS), await request.json()));
  },
};
