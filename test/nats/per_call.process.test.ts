// Tools of workers, with a connection for each call.

import { describe } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { type ToolDefinition, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { remoteToolsPerCall, serveTools } from "@plue/tools/nats";
import { SECRET, type TestServer, useServer, withServer } from "./server.ts";
import { assertContent } from "./world.ts";

type Connection = Awaited<ReturnType<TestServer["connect"]>>;

const ping: ToolDefinition = { name: "ping", description: "Answers.", execute: () => "pong" };

describe("remoteToolsPerCall()", () => {
  const server = useServer();

  withServer("closes the connection of each call, and of each refresh", async () => {
    const far = new ToolRegistry({ tools: [ping] });
    const served = await serveTools(far, await server.connect(), { secret: SECRET });
    const opened: Connection[] = [];
    const registry = new ToolRegistry();
    const tools = remoteToolsPerCall(async () => {
      const connection = await server.connect();
      opened.push(connection);
      return connection;
    }, { registry, secret: SECRET, maxAgeMs: 0 });
    const dispatcher = new ToolDispatcher(registry);
    await tools.refresh();
    const known = registry.getTool("ping");
    assertEquals(tools.tools.map(({ id }) => id), ["ping"]);
    const results = await Promise.all([1, 2].map(() => dispatcher.dispatch({ name: "ping" })));
    assertEquals(results.map((result) => result.ok && result.content), ["pong", "pong"]);
    far.registerTool({ ...ping, name: "pong" });
    while (!registry.hasTool("pong")) await tools.refresh();
    // An unchanged tool stays the same object.
    assertEquals(registry.getTool("ping") === known, true);
    await served.close();
    while (tools.tools.some((tool) => registry.isAvailable(tool))) await tools.refresh();
    assertEquals(opened.every((connection) => connection.isClosed()), true);
  });

  withServer("rejects if the first refresh fails, and reports a later failure", async () => {
    const errors: unknown[] = [];
    let isDown = true;
    const tools = remoteToolsPerCall(async () => {
      if (isDown) throw new Error("No way");
      return await server.connect();
    }, {
      ...{ registry: new ToolRegistry(), secret: SECRET, maxAgeMs: 0 },
      onError: (error) => errors.push(error),
    });
    await assertRejects(() => tools.refresh(), Error, "No way");
    isDown = false;
    await tools.refresh();
    isDown = true;
    await tools.refresh();
    assertEquals(errors.map(String), ["Error: No way"]);
  });

  withServer("finds other workers if the known ones have ended", async () => {
    const far = new ToolRegistry({ tools: [{ ...ping, name: "moved" }] });
    const serve = async () =>
      await serveTools(far, await server.connect(), { secret: SECRET, name: "moving" });
    const old = await serve();
    const registry = new ToolRegistry();
    const tools = remoteToolsPerCall(() => server.connect(), {
      ...{ registry, secret: SECRET, name: "moving", maxAgeMs: 3_600_000 },
    });
    await tools.refresh();
    await serve();
    await old.close();
    assertContent(await new ToolDispatcher(registry).dispatch({ name: "moved" }), "pong");
  });
});
