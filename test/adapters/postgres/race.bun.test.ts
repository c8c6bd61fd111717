import { describe } from "bun:test";
import { migratePostgresCallStore } from "@plue/tools/postgres";
import { itRaces } from "../../contract/race.ts";
import { missing, useServer } from "./server.ts";

describe("postgresCallStore()", () => {
  const server = useServer();

  itRaces(missing, async () => {
    await migratePostgresCallStore(server().pool());
    return server();
  });
});
