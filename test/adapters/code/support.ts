/** Parts of the tests of code mode. */

import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import {
  type Executor,
  quickJs,
  workerLoader,
  type WorkerLoaderBinding,
} from "../../../src/adapters/code/mod.ts";

const FILE = "../../../node_modules/quickjs-wasi/quickjs.wasm";

/** Imports a module that not every runtime has. A bundler cannot follow the variable. */
const importHere = (name: string): Promise<Record<string, unknown>> => import(name);

export async function quickJsBytes(): Promise<Uint8Array<ArrayBuffer>> {
  const { readFile } = await importHere("node:fs/promises") as typeof import("node:fs/promises");
  return await readFile(new URL(FILE, import.meta.url));
}

export async function loaderBinding(): Promise<WorkerLoaderBinding | undefined> {
  if (!IS_WORKERS) return undefined;
  const { env } = await importHere("cloudflare:workers");
  return (env as { readonly LOADER: WorkerLoaderBinding }).LOADER;
}

let executor: Promise<Executor> | undefined;

/** Returns the executor that the tests share: preparing one takes longer than most tests. */
export function sharedExecutor(): Promise<Executor> {
  return executor ??= create();
}

async function create(): Promise<Executor> {
  if (!IS_WORKERS) return quickJs(await quickJsBytes());
  // `test/support/run_workerd.ts` adds this module, whose loops are counted.
  return quickJs((await importHere("quickjs.wasm"))["default"] as WebAssembly.Module);
}

/** Returns all executors of this runtime. */
export async function allExecutors(): Promise<Readonly<Record<string, Executor>>> {
  const loader = await loaderBinding();
  return { quickJs: await sharedExecutor(), ...(loader && { workerLoader: workerLoader(loader) }) };
}
