/**
 * Bun as the host of the measurements in guest mode:
 * `bun guest.ts wake ROUNDS` for the raw wake, `bun guest.ts callback|fd ORDERS` for calls.
 */

import { dlopen, JSCallback, ptr } from "bun:ffi";
import { join } from "node:path";
import process from "node:process";
import { attachNative } from "../../src/adapters/native/mod.ts";
import { registry } from "./tools.ts";

const BUILD = join(import.meta.dirname, "..", "..", "ffi", "build", "bench");
const SUFFIX = process.platform === "darwin" ? "dylib" : "so";

/** Runs the event loop until the library reports that its work has ended. */
async function untilDone(status: () => number): Promise<number> {
  while (status() < 0) await new Promise((resolve) => setTimeout(resolve, 20));
  return status();
}

async function measureWake(rounds: number): Promise<number> {
  const { symbols } = dlopen(join(BUILD, `libwake.${SUFFIX}`), {
    wake_start: { args: ["function", "i32"], returns: "i32" },
    wake_answer: { args: [], returns: "void" },
    wake_status: { args: [], returns: "i32" },
  });
  const wake = new JSCallback(() => symbols.wake_answer(), {
    args: [],
    returns: "void",
    threadsafe: true,
  });
  symbols.wake_start(wake.ptr, rounds);
  return await untilDone(symbols.wake_status);
}

async function measureCalls(wake: "callback" | "fd", orders: string): Promise<number> {
  const library = join(BUILD, `libhost.${SUFFIX}`);
  const attachment = await attachNative(registry, { library, wake });
  const { symbols } = dlopen(library, {
    bench_start: { args: ["ptr"], returns: "i32" },
    bench_status: { args: [], returns: "i32" },
  });
  const text = Buffer.from(`${orders}\0`);
  symbols.bench_start(ptr(text));
  const status = await untilDone(symbols.bench_status);
  await attachment.detach();
  return status;
}

const [kind = "", order = ""] = process.argv.slice(2);
process.exitCode = kind === "wake"
  ? await measureWake(Number(order))
  : await measureCalls(kind === "fd" ? "fd" : "callback", order);
