import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "bun:test";
import { describeStreaming } from "./http_watched.ts";
import { type ServedWorker, serveWorker } from "./workerd.ts";

describe("streams from workerd", () => {
  if (spawnSync("workerd", ["--version"]).status !== 0) {
    test.skip("[skipped: workerd is not installed]", () => {});
    return;
  }
  let served: ServedWorker;
  beforeAll(async () => {
    served = await serveWorker(join(import.meta.dirname, "http_worker.ts"));
  });
  afterAll(() => served.stop());
  describeStreaming(() => served.url);
});
