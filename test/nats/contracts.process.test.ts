import { describe } from "bun:test";
import { ToolRegistry } from "@plue/tools";
import { natsCallStore, remoteTools, serveTools } from "@plue/tools/nats";
import { describeCallStore } from "../contract/call_store_contract.ts";
import { describeDispatch } from "../contract/dispatch_contract.ts";
import { missing, SECRET, useServer, withServer } from "./server.ts";

describe("NATS", () => {
  const server = useServer();

  let buckets = 0;
  const bucketOf = new WeakMap<object, string>();

  async function open(
    bucket: string,
    clock: { timestamp(): number },
  ): ReturnType<typeof natsCallStore> {
    const store = await natsCallStore(await server.connect(), { bucket, clock });
    bucketOf.set(store, bucket);
    return store;
  }

  if (missing === undefined) {
    describeCallStore("natsCallStore()", {
      create: (clock) => open(`bucket_${++buckets}`, clock),
      open: (store, clock) => open(bucketOf.get(store) ?? "", clock),
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
