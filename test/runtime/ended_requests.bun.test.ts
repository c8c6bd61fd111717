import { assertEquals } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { join } from "node:path";
import { serve, type Served } from "./serve.ts";
import { type ServedWorker, serveWorker } from "./workerd.ts";

describe("a caller of a worker", () => {
  let worker: ServedWorker;
  let hub: Served;
  let held = Promise.withResolvers<void>();
  let isHolding = false;
  const call = async (path: string, signal?: AbortSignal): Promise<string> =>
    await (await fetch(`${worker.url}${path}?hub=${hub.url}`, { signal: signal ?? null })).text();
  beforeAll(async () => {
    worker = await serveWorker(
      join(import.meta.dirname, "ended_requests_worker.ts"),
      'compatibilityFlags = ["nodejs_compat"],',
    );
    hub = await serve(() => {
      if (!isHolding) return new Response();
      isHolding = false;
      held.resolve();
      return new Promise(() => {});
    });
  });
  afterAll(() => Promise.all([worker.stop(), hub.stop()]));

  const made = ["permission", "refresh", "reconnection", "count", "check", "record", "trial"];
  const failsOnce = new Set(["connection", "initialization"]);
  for (const what of [...failsOnce, ...made]) {
    it(`receives a ${what} although an earlier request for it was aborted`, async () => {
      await call("/seed");
      held = Promise.withResolvers();
      isHolding = true;
      const leaving = new AbortController();
      const first = call(`/${what}`, leaving.signal).catch(({ name }) => name);
      await held.promise;
      leaving.abort();
      assertEquals(await first, "AbortError");
      await call("/seed");
      if (failsOnce.has(what)) await call(`/${what}`);
      assertEquals(await call(`/${what}`), "done");
    });
  }
});
