// Writes entries into the store at a path, and prints the number of each stored entry.

import process from "node:process";
import { sqliteCallStore } from "../../../src/adapters/sqlite/mod.ts";

const store = await sqliteCallStore(process.argv[2] ?? "");
for (let index = 0;; index++) {
  await store.create(`e.a.${index}`, new Uint8Array(100));
  // After the write: data in a buffer of this process would be lost with it.
  await new Promise((resolve) => process.stdout.write(`${index}\n`, resolve));
}
