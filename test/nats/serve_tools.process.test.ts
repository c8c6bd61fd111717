import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { useWorlds } from "./world.ts";

describe("serveTools({ countedBy })", () => {
  const { withWorld } = useWorlds();

  withWorld("counts plain calls, tasks and failures in its process's metrics", async (world) => {
    const ping = { name: "ping", description: "Answers.", execute: () => "pong" };
    const countedBy = new ToolDispatcher(new ToolRegistry());
    await world.serve([
      ping,
      { ...ping, name: "bad", execute: () => Promise.reject(new Error("broken")) },
      { ...ping, name: "job", execution: "task", idempotent: true },
    ], { countedBy });
    const { dispatcher } = await world.call();
    for (const name of ["ping", "job", "bad"]) await dispatcher.dispatch({ name });
    const counted = countedBy.metrics().tools
      .map(({ id, calls, failed, inFlight }) => ({ id, calls, failed, inFlight }));
    assertEquals(counted, [
      { id: "bad", calls: 1, failed: 1, inFlight: 0 },
      { id: "job", calls: 1, failed: 0, inFlight: 0 },
      { id: "ping", calls: 1, failed: 0, inFlight: 0 },
    ]);
  });
});
