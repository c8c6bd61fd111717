/** The store of a process of the race. */

import { createClient } from "redis";
import { redisCallStore } from "../../../src/adapters/redis/mod.ts";
import type { CallStore } from "../../../src/execute/durable/mod.ts";

export async function openStore(url: string): Promise<CallStore> {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: { reconnectStrategy: 20 },
  });
  client.on("error", () => {});
  await client.connect();
  return await redisCallStore(client);
}
