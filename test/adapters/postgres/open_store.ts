/** The store of a process of the race. */

import pg from "pg";
import { postgresCallStore } from "../../../src/adapters/postgres/mod.ts";
import type { CallStore } from "../../../src/execute/durable/mod.ts";

export function openStore(connectionString: string): Promise<CallStore> {
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 5_000, max: 4 });
  return postgresCallStore(pool);
}
