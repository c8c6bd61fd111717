/**
 * A runtime as the host of the native suite:
 *
 * ```sh
 * bun test/native/guest.ts libsuite.so [--wake=callback|fd] [--cycle] [--exit] part ...
 * ```
 *
 * `--cycle` detaches and attaches again, many times, while the parts run; `--exit` ends the process
 * with 42 while the parts run, after a thousand calls.
 */

import process from "node:process";
import * as library from "../../src/adapters/native/mod.ts";
import { findKoffi, loadSuite } from "./suite_library.ts";
import { dispatch, registry, tasks } from "./tools.ts";

const [path = "", ...rest] = process.argv.slice(2);
const wake = rest.find((word) => word.startsWith("--wake="))?.slice("--wake=".length);
const isCycling = rest.includes("--cycle");
let calls = 0;
const counted = { ...dispatch, hooks: { before: () => void calls++ } };
const parts = rest.filter((word) => !word.startsWith("--"));

function attach(): Promise<library.NativeAttachment> {
  return library.attachNative(registry, {
    library: path,
    tasks,
    dispatch: rest.includes("--exit") ? counted : dispatch,
    wake: wake as library.WakeKind | undefined,
    koffi: findKoffi(),
  });
}

const suite = await loadSuite(path);
let attachment = await attach();
console.log(`attached by ${attachment.wake}`);
console.log(`on the JavaScript thread: ${suite.callHere()}`);
if (suite.start(parts.join(" ")) !== 0) {
  throw new Error("the suite did not start");
}

let cycles = 0;
while (suite.status() < 0) {
  await new Promise((resolve) => setTimeout(resolve, 5));
  if (calls > 1_000) process.exit(42);
  if (!isCycling) continue;
  await attachment.detach();
  attachment = await attach();
  cycles++;
}
await attachment.detach();
if (isCycling) console.log(`attached ${cycles + 1} times`);
process.exitCode = suite.status();
