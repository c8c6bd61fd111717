// Waits for the key "go", creates 200 keys that another process creates too, and prints how
// many were its own.

import process from "node:process";
import { sqliteCallStore } from "../../../src/adapters/sqlite/mod.ts";

using store = await sqliteCallStore(process.argv[2] ?? "");
console.log("ready");
while (await store.get("go") === undefined);
let own = 0;
for (let index = 0; index < 200; index++) {
  if (await store.create(`used.a.${index}`, new Uint8Array()) !== undefined) own++;
}
console.log(own);
