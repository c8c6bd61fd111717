import { describe } from "bun:test";
import { join } from "node:path";
import { migratePostgresCallStore, postgresCallStore } from "@plue/tools/postgres";
import { missingRuntime, race } from "../../contract/race.ts";
import { maybe } from "../../support/skip.ts";
import { missing, useServer } from "./server.ts";

const why = missing ?? missingRuntime;

describe("three processes over postgresCallStore()", () => {
  const server = useServer();

  maybe(why === undefined, why ?? "")(
    "run each of 240 calls once, while the server is killed twice",
    async () => {
      const pool = server().pool();
      await migratePostgresCallStore(pool);
      await race({
        store: await postgresCallStore(pool),
        opener: join(import.meta.dirname, "open_store.ts"),
        url: server().url,
        kill: () => server().kill(),
        start: () => server().start(),
      });
    },
  );
});
