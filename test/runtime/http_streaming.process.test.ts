import { afterAll, beforeAll, describe } from "bun:test";
import { createWatchedApp } from "./http_app.ts";
import { describeStreaming } from "./http_watched.ts";
import { serve, type Served } from "./serve.ts";

describe("streams over real connections", () => {
  let served: Served;
  beforeAll(async () => {
    const app = createWatchedApp();
    served = await serve((request) => app.fetch(request));
  });
  afterAll(() => served.stop());
  describeStreaming(() => served.url);
});
