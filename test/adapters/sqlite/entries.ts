// Uses the store at a path. "write" creates entries, and prints the number of each stored one. "claim"
// waits for the key "go", creates 200 keys that another process creates too, and prints how many were new.

import process from "node:process";
import { sqliteCallStore } from "../../../src/adapters/sqlite/mod.ts";
import { poll } from "../../support/waiting.ts";

const [, , action, path = ""] = process.argv;
using store = await sqliteCallStore(path);
for (let index = 0; action === "write"; index++) {
  await store.create(`e.a.${index}`, new Uint8Array(100));
  // Waits for the write, because the kill of this process would lose buffered data.
  await new Promise((resolve) => process.stdout.write(`${index}\n`, resolve));
}
console.log("ready");
await poll(async () => await store.get("go") !== undefined);
let own = 0;
for (let index = 0; index < 200; index++) {
  if (await store.create(`used.a.${index}`, new Uint8Array()) !== undefined) own++;
}
console.log(own);
