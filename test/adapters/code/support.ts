/** Parts of the tests of code mode. */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Executor, quickJs } from "../../../src/adapters/code/mod.ts";

const FILE = new URL("../../../node_modules/quickjs-wasi/quickjs.wasm", import.meta.url);

export const quickJsBytes = (): Promise<Uint8Array> => readFile(fileURLToPath(FILE));

let executor: Promise<Executor> | undefined;

/** Returns the executor that the tests share: preparing one takes longer than most tests. */
export function sharedExecutor(): Promise<Executor> {
  return executor ??= quickJsBytes().then((bytes) => quickJs(bytes));
}
