/** The executor for programs in separate Workers, which Cloudflare's Worker Loader creates. */

import { describeThrown, fail, isFunction, noop } from "../../tool/mod.ts";
import type { Executor, Program } from "./executor.ts";
import { PRELUDE } from "./prelude.ts";
import { FILE, ProgramRun, type Sandbox, Stopped } from "./program_run.ts";

/** The part of Cloudflare's binding `worker_loaders` that {@linkcode workerLoader} uses. */
export interface WorkerLoaderBinding {
  load(code: {
    compatibilityDate: string;
    mainModule: string;
    modules: Record<string, string>;
    globalOutbound: null;
    env: Record<string, never>;
    limits: { cpuMs: number };
  }): { getEntrypoint(): unknown };
}

interface Guest {
  run(exchange: (output: string) => Promise<string>, limits: string): Promise<void>;
}

const COMPATIBILITY_DATE = "2026-08-01";

/** The globals of a program. Others, such as `fetch`, timers and randomness, are removed. */
const GLOBALS = "Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean " +
  "String Symbol Date Promise RegExp Error AggregateError EvalError RangeError ReferenceError " +
  "SyntaxError TypeError URIError globalThis JSON Math ArrayBuffer Uint8Array Int8Array " +
  "Uint16Array Int16Array Uint32Array Int32Array BigUint64Array BigInt64Array Float32Array " +
  "Float64Array Uint8ClampedArray DataView Map BigInt Set Iterator WeakMap WeakSet Proxy Reflect " +
  "decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval isFinite isNaN";

const setupOf = (time: number): string => `
const { setTimeout } = globalThis;
export const idle = () => new Promise((resolve) => setTimeout(resolve, 0));
const names = new Set(${JSON.stringify(GLOBALS)}.split(" "));
for (let scope = globalThis; scope !== Object.prototype; scope = Object.getPrototypeOf(scope)) {
  for (const name of Object.getOwnPropertyNames(scope)) if (!names.has(name)) delete scope[name];
}
Date.now = () => ${time};
globalThis.Date = Date.prototype.constructor = new Proxy(Date, {
  apply: (date) => new date(${time}).toString(),
  construct: (date, args, self) => Reflect.construct(date, args.length > 0 ? args : [${time}], self),
});
export const { run, settle, take } = ${PRELUDE};
`;

const [WORKERS, SETUP, PROGRAM] = ["cloudflare:workers", "setup.js", FILE].map((name) =>
  `"${name}"`
);
/** `isUsed`: a program can call the entrypoint of its own Worker. */
const MAIN = `
import { WorkerEntrypoint } from ${WORKERS};
import { idle, run, settle, take } from ${SETUP};
import program from ${PROGRAM};
let isUsed = false;
export default class extends WorkerEntrypoint {
  async run(exchange, limits) {
    if (isUsed) return;
    isUsed = true;
    run(limits, program);
    for (;;) {
      await idle();
      const reply = await exchange(take());
      if (reply === "") return;
      settle(reply);
    }
  }
}
`;

/**
 * Creates an executor that runs each program in a new Worker without network, bindings and
 * environment. Needs the binding `worker_loaders` of Cloudflare Workers. Programs run faster than
 * with `quickJs`, which runs on every runtime.
 *
 * The platform enforces `cpuMs`, and its own limit of memory instead of `memoryBytes`. The open
 * source `workerd` enforces neither: use this executor there only for programs that you trust.
 *
 * @example Usage
 * ```ts
 * import type { Toolset } from "@plue/tools";
 * import { codeTool, workerLoader, type WorkerLoaderBinding } from "@plue/tools/code";
 *
 * export function programsOf(toolset: Toolset, env: { LOADER: WorkerLoaderBinding }): Toolset {
 *   return codeTool(toolset, { executor: workerLoader(env.LOADER) });
 * }
 * ```
 *
 * @param loader The binding.
 * @throws {TypeError} If it is not a binding of this kind.
 */
export function workerLoader(loader: WorkerLoaderBinding): Executor {
  if (!isFunction(loader?.load)) {
    fail("run programs in Workers", "pass the binding of worker_loaders, such as env.LOADER");
  }
  return { run: async (program) => await new ProgramRun(program, workerOf(loader, program)).run() };
}

function workerOf(loader: WorkerLoaderBinding, program: Program): Sandbox {
  const { limits: { cpuMs }, source, time } = program;
  /** Rejects when the Worker ends. A program can end it at any time. */
  let ended: Promise<string>;
  let endTurn: ((output: string) => void) | undefined;
  let reply = (_json: string): void => {};

  /** Ends the turn of the program. Returns the text for its next turn; `""` ends the program. */
  const exchange = async (output: string): Promise<string> => {
    const end = endTurn;
    endTurn = undefined;
    if (end === undefined) return "";
    const next = new Promise<string>((resolve) => reply = resolve);
    end(String(output));
    return await next;
  };
  const start = async (limits: string): Promise<string> => {
    let message = "no answer";
    try {
      const worker = loader.load({
        compatibilityDate: COMPATIBILITY_DATE,
        mainModule: "main.js",
        modules: {
          "main.js": MAIN,
          "setup.js": setupOf(time),
          // The source is in the first line, so that the lines of errors are its own.
          [FILE]: `export default async () => {${source}\n}`,
        },
        globalOutbound: null,
        env: {},
        limits: { cpuMs },
      });
      await (worker.getEntrypoint() as Guest).run(exchange, limits);
    } catch (error) {
      message = describeThrown(error);
      const [, name, text] = /\b(\w*Error): (.*)/.exec(message) ?? [];
      // The module of the program is invalid.
      if (text !== undefined && message.includes(`${FILE}:`)) {
        return JSON.stringify({ failed: [name, text, message] });
      }
    }
    throw new Stopped(`Cloudflare ended the program: ${message}`);
  };
  return {
    turn(operation, json) {
      const turn = new Promise<string>((resolve) => endTurn = resolve);
      if (operation === "run") (ended = start(json)).catch(noop);
      else reply(json);
      return Promise.race([turn, ended]);
    },
    close() {
      endTurn = undefined;
      reply("");
    },
  };
}
