import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { systemClock } from "../../src/core.ts";
import { Fleet, type PresenceMessage } from "../../src/adapters/nats/fleet.ts";
import { Seal } from "../../src/adapters/nats/seal.ts";
import { presenceSubject } from "../../src/adapters/nats/protocol.ts";
import { SECRET, useServer, withServer } from "./server.ts";
import { linkOf } from "./world.ts";

describe("Fleet", () => {
  const server = useServer();

  withServer("has the workers of its registry whose last message is at most 6 s old", async () => {
    const [near, far] = [await server.connect(), await server.connect()];
    const seal = new Seal("test", SECRET);
    let now = 0;
    let time = Date.now();
    const clock = { ...systemClock, now: () => now };
    const fleet = new Fleet(linkOf(near, "mine"), clock);
    for (const worker of ["one", "two"]) {
      fleet.update(`mine.worker.${worker}.0`, { worker, up: ["path"], down: [], tooLarge: [] });
    }
    const say = async (registry: string, more: Partial<PresenceMessage> = {}): Promise<void> => {
      const subject = presenceSubject(registry, "one");
      far.publish(subject, seal.wrap({ worker: "one", time: time++, ...more }, subject));
      await far.flush();
      await near.flush();
    };
    await near.flush();
    const there =
      (): unknown => [fleet.size, fleet.serves("path"), fleet.choose("path", new Set())];

    now = 3_000;
    await say("mine");
    assertEquals(fleet.size, 2);
    now = 6_000;
    assertEquals(there(), [1, true, "one"]);
    await say("else");
    now = 9_000;
    assertEquals(there(), [0, false, undefined]);
    await say("mine");
    assertEquals(there(), [1, true, "one"]);
    await say("mine", { isLeaving: true });
    assertEquals(there(), [0, false, undefined]);
    fleet.stop();
  });
});
