/** A worker with the objects. */

import { DurableObject } from "cloudflare:workers";
import { callStoreObject } from "@plue/tools/durable-objects";

export class Calls extends callStoreObject(DurableObject) {
  /** Deletes a table, so that further calls throw. */
  break(): void {
    this.ctx.storage.sql.exec("drop table entries");
  }
}

export default { fetch: () => new Response("objects") };
