// Durable Objects on workerd, whose storage is on the disk.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertGreater } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { CallStore, StoredEntry } from "@plue/tools/calls";
import { describeOutages } from "../../contract/call_store_contract.ts";
import { maybe } from "../../support/skip.ts";
import type { Report } from "../../support/suite_tree.ts";
import { fromBytes, toBytes } from "./bytes.ts";
import { whySkipped, WorkerdObjects } from "./workerd_objects.ts";
import { poll } from "../../support/waiting.ts";

const withWorkerd = maybe(whySkipped === undefined, whySkipped ?? "");
const fileOf = (name: string): string => join(import.meta.dirname, `${name}.ts`);

describe("durableObjectStore() in a worker, with the objects in another one", () => {
  withWorkerd("passes its tests in workerd", async () => {
    await using workers = await WorkerdObjects.create(fileOf("suite"), fileOf("store_worker"));
    const printed = workers.test();
    const [, report = "{}"] = /REPORT (.*)/.exec(printed) ?? [];
    const { failures, passed }: Report = JSON.parse(report);
    assertEquals(failures, [], printed);
    assertGreater(passed, 30);
  });
});

/** Makes an operation on the store in a worker. */
async function call(workers: WorkerdObjects, ...operation: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify(operation, fromBytes);
  const response = await fetch(workers.url, { method: "POST", body }).catch((cause) => {
    throw new Error("Cannot use the store of calls: the worker is away", { cause });
  });
  if (!response.ok) throw new Error(await response.text());
  const [result] = await response.json() as [unknown];
  return result ?? undefined;
}

if (whySkipped === undefined) {
  let workers: WorkerdObjects;
  beforeAll(async () => {
    workers = await WorkerdObjects.create(fileOf("store_worker"));
    await workers.start();
  });
  afterAll(() => workers[Symbol.asyncDispose]());

  describeOutages("durableObjectStore()", {
    open: (): CallStore => ({
      async get(key) {
        const entry = await call(workers, "get", key) as StoredEntry | undefined;
        return entry && { ...entry, value: toBytes(entry.value) as Uint8Array };
      },
      create: (...request) => call(workers, "create", ...request) as Promise<number | undefined>,
      update: (...request) => call(workers, "update", ...request) as Promise<number | undefined>,
      delete: (...request) => call(workers, "delete", ...request) as Promise<boolean>,
      due: () => Promise.resolve([]),
      async *list() {},
    }),
    kill: () => workers.kill(),
    start: () => workers.start(),
  });
}

describe("the Worker of docs/cloudflare.md", () => {
  withWorkerd("resumes a task that was due while workerd was away", async () => {
    const guide = readFileSync(join(import.meta.dirname, "../../../docs/cloudflare.md"), "utf8");
    const [, listing = ""] = /```ts ignore\n([^]*?)```/.exec(guide) ?? [];
    // Shortens the lease and the interval of the listing, so that the test is fast.
    const source = listing.replaceAll("callTasks({", "callTasks({ leaseMs: 500,")
      .replace("1_000)", "100)");
    await using workers = await WorkerdObjects.create(source);
    const request = async (path: string, init: RequestInit = {}) => {
      const headers = {
        authorization: "Bearer a-token-of-the-tests",
        "content-type": "application/json",
      };
      const response = await fetch(workers.url + path, { ...init, headers });
      return await response.json() as {
        readonly id: string;
        readonly status: string;
        readonly progress?: { readonly done: number };
        readonly result?: { readonly content: unknown };
      };
    };
    await workers.start();
    const body = '{"arguments":{"month":"May"}}';
    const { id } = await request("/tools/report/execute", { method: "POST", body });
    let task = await request(`/calls/${id}`);
    await poll(async () => ((task = await request(`/calls/${id}`)).progress?.done ?? 0) >= 3);
    assertEquals(task.status, "working");
    await workers.kill();
    await new Promise((resolve) => setTimeout(resolve, 600));

    await workers.start();
    await poll(async () => (task = await request(`/calls/${id}`)).status !== "working");
    assertEquals([task.status, task.result?.content], ["completed", "The report of May"]);
  });
});
