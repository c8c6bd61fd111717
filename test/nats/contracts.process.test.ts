import { describe } from "bun:test";
import { ToolRegistry } from "@plue/tools";
import { natsCallStore, remoteTools, serveTools } from "@plue/tools/nats";
import { describeCallStore, type StoreTime } from "../contract/call_store_contract.ts";
import { describeDispatch } from "../contract/dispatch_contract.ts";
import { missing, SECRET, useServer, withServer } from "./server.ts";

describe("NATS", () => {
  const server = useServer();

  if (missing === undefined) {
    const open = async (clock: StoreTime, bucket: string) =>
      await natsCallStore(await server.connect(), { bucket, clock });
    describeCallStore("natsCallStore()", {
      create: open,
      open: (_, clock, bucket) => open(clock, bucket),
    });
  } else withServer("natsCallStore() as a CallStore", () => {});

  describeDispatch("A worker", async (far) => {
    const served = await serveTools(far, await server.connect(), { secret: SECRET });
    const registry = new ToolRegistry();
    const remote = await remoteTools(await server.connect(), { registry, secret: SECRET });
    return {
      registry,
      async close() {
        await remote.close();
        await served.close();
      },
    };
  }, withServer);
});
