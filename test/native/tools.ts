/**
 * The tools that the host suite in C calls (`ffi/test/README.md` lists them).
 *
 * @module
 */

import process from "node:process";
import { defineTool, type ToolDispatcherOptions, ToolRegistry } from "../../mod.ts";

const milliseconds = {
  type: "object",
  properties: { ms: { type: "number", minimum: 0 } },
  required: ["ms"],
} as const;

/** Waits; stops early, by throwing, when `signal` aborts. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** One turn of the event loop, without the millisecond that a timer takes. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

const tools = [
  defineTool({
    name: "echo",
    description: "Returns its parameters.",
    parameters: { type: "object" },
    execute: (params: unknown) => params,
  }),
  defineTool({
    name: "later",
    description: "Returns its parameters after one turn of the event loop.",
    parameters: { type: "object" },
    async execute(params: unknown) {
      await turn();
      return params;
    },
  }),
  defineTool({
    name: "sleep",
    description: "Sleeps, and stops when it is aborted.",
    parameters: milliseconds,
    async execute({ ms }, { signal }) {
      await pause(ms, signal);
      return { slept: ms };
    },
  }),
  defineTool({
    name: "deaf",
    description: "Sleeps, and does not listen to its signal.",
    parameters: milliseconds,
    async execute({ ms }) {
      await pause(ms);
      return { slept: ms };
    },
  }),
  defineTool({
    name: "spin",
    description: "Keeps the JavaScript thread busy.",
    parameters: milliseconds,
    execute({ ms }) {
      const end = performance.now() + ms;
      while (performance.now() < end);
      return { spun: ms };
    },
  }),
  defineTool({
    name: "progress",
    description: "Sends metadata n times.",
    parameters: {
      type: "object",
      properties: { n: { type: "integer", minimum: 0 }, ms: { type: "number", minimum: 0 } },
      required: ["n"],
    },
    async execute({ n, ms = 0 }, { sessionId, messageId, metadata, signal }) {
      for (let i = 0; i < n; i++) {
        metadata({ i });
        if (ms > 0) await pause(ms, signal);
      }
      return { n, session: sessionId ?? null, message: messageId ?? null };
    },
  }),
  defineTool({
    name: "stream",
    description: "Sends progress, and yields n numbers.",
    parameters: {
      type: "object",
      properties: { n: { type: "integer", minimum: 0 } },
      required: ["n"],
    },
    async *execute({ n }, { progress }) {
      for (let i = 0; i < n; i++) {
        progress(i, n);
        yield i;
      }
      return { n };
    },
  }),
  defineTool({
    name: "big",
    description: "Returns a string of n letters.",
    parameters: {
      type: "object",
      properties: { n: { type: "integer", minimum: 0 } },
      required: ["n"],
    },
    execute: ({ n }) => "x".repeat(n),
  }),
  defineTool({
    name: "fail",
    description: "Throws.",
    execute: () => {
      throw new Error('boom "quoted"');
    },
  }),
  defineTool({
    name: "crash",
    description: "Ends the process of the tools.",
    parameters: {
      type: "object",
      properties: { code: { type: "integer" }, signal: { type: "string" } },
    },
    execute({ code = 3, signal }) {
      if (signal !== undefined) process.kill(process.pid, signal);
      else process.exit(code);
    },
  }),
  defineTool({
    name: "pid",
    description: "Says which process runs the tools.",
    execute: () => ({ pid: process.pid }),
  }),
  defineTool({
    name: "memory",
    description: "Says how much memory that process has.",
    parameters: { type: "object", properties: { gc: { type: "boolean" } } },
    execute({ gc = false }) {
      if (gc) collectGarbage();
      return { rss: process.memoryUsage().rss };
    },
  }),
  defineTool({
    name: "error_key",
    description: "Succeeds with an object that looks like a failure.",
    execute: () => ({ error: "not one" }),
  }),
  defineTool({
    name: "hidden",
    description: "For administrators.",
    roles: ["admin"],
    execute: () => ({ hidden: true }),
  }),
  defineTool({
    name: "greet",
    description: "Greets with the word that it is configured with.",
    config: {
      type: "object",
      properties: { word: { type: "string" } },
      additionalProperties: false,
    },
    execute: (_params, { config }) => ({ word: (config as { word?: string }).word ?? "hello" }),
  }),
];

/** The registry, as a tools module exports it. */
export const registry: ToolRegistry = new ToolRegistry({ tools });

/** The suite moves 64 MiB at a time. */
export const dispatch: ToolDispatcherOptions = {
  maxArgumentBytes: 256 * 1024 * 1024,
  maxOutputBytes: 512 * 1024 * 1024,
  graceMs: 60_000,
};

function collectGarbage(): void {
  const { Bun: bun, gc } = globalThis as {
    readonly Bun?: { gc(force: boolean): void };
    readonly gc?: () => void;
  };
  if (bun !== undefined) bun.gc(true);
  else gc?.();
}
