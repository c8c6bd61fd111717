/** The entry for Cloudflare Workers (`wrangler.jsonc`) and workerd (`workerd.capnp`). */

import { DurableObject } from "cloudflare:workers";
import type { Hono } from "hono";
import {
  type CallStoreNamespace,
  callStoreObject,
  durableObjectStore,
} from "../../src/adapters/durable_objects/mod.ts";
import { storedRateLimits } from "../../src/adapters/hono/mod.ts";
import { createEdgeApp } from "./app.ts";

/** The variables of the platform. */
export interface Environment {
  /** The token of callers; set it with `wrangler secret put PLUE_TOKEN`. */
  readonly PLUE_TOKEN?: string;
  /** The objects that count the requests of all isolates. */
  readonly CALLS: CallStoreNamespace;
}

/** The class of the objects. */
export class Calls extends callStoreObject(DurableObject) {}

/** The part of the platform's context that keeps a call alive while its client listens. */
export interface ExecutionContext {
  waitUntil(promise: Promise<unknown>): void;
  passThroughOnException(): void;
  readonly props: unknown;
}

// The token comes with the first request; it does not change while the worker lives.
let app: Hono | undefined;

export default {
  fetch(
    request: Request,
    environment: Environment,
    context: ExecutionContext,
  ): Response | Promise<Response> {
    app ??= createEdgeApp({
      token: environment.PLUE_TOKEN,
      rateLimits: storedRateLimits(durableObjectStore(environment.CALLS), { maxPermits: 20 }),
    });
    return app.fetch(request, environment, context);
  },
};
