/** The tools that the host suite in C calls (`ffi/test/README.md` lists them). */

import { existsSync, writeFileSync } from "node:fs";
import process from "node:process";
import {
  defineTool,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  ToolResult,
} from "../../mod.ts";
import {
  callTasks,
  memoryCallStore,
  runByClient,
  sealedTickets,
} from "../../src/adapters/calls/mod.ts";

/** The number of events that a flood sends in each turn. */
const EVENTS_OF_A_FLOOD = 100;

/** The number of steps by call id. */
const steps = new Map<string, number>();
/** Functions that end the held calls. */
const held = new Set<() => void>();

/** Waits; stops early, by throwing, when `signal` aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** Throws when `signal` aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** One turn of the event loop, without the millisecond that a timer takes. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** The result of `locate` and `locate_freely`. */
const PLACE = { type: "object", properties: { at: { type: "number" } }, required: ["at"] } as const;
const WHO = { type: "object", properties: { who: { type: "string" } } } as const;

/** The members of the results of `draw` and `look_alike`. */
const DOT = {
  content: [
    { type: "text", text: "A dot." },
    { type: "image", data: "R0lG", mimeType: "image/gif" },
  ],
  metadata: { file: "dot.gif" },
  structuredContent: { dots: 1 },
} as const;

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
    name: "relay",
    description: "Calls another tool, as a model would.",
    parameters: {
      type: "object",
      properties: { name: { type: "string" }, params: { type: "object" } },
      required: ["name", "params"],
    },
    async execute({ name, params }) {
      const result = await new ToolDispatcher(registry).dispatch({ name, arguments: params });
      if (!result.ok) throw new Error(result.error.message);
      return result.content;
    },
  }),
  defineTool({
    name: "print",
    description: "Prints a text, and a line's end.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    execute({ text }) {
      console.log(text);
      return null;
    },
  }),
  defineTool({
    name: "confirm",
    description: "Asks before it answers.",
    async execute(_params, context) {
      const answer = await context.ask("sure", { kind: "approval", message: "Really?" });
      return answer.action;
    },
  }),
  defineTool({
    name: "ask_word",
    description: "Takes a step, asks for a word, and says how often it took the step.",
    async execute(_params, { ask, step, callId }) {
      await step("count", () => void steps.set(callId, (steps.get(callId) ?? 0) + 1));
      const answer = await ask("word", {
        message: "Which word?",
        schema: { type: "string", minLength: 2 },
      });
      const word = answer.action === "accept" ? answer.content : answer.action;
      return { steps: steps.get(callId), word };
    },
  }),
  defineTool({
    name: "draw",
    description: "Returns blocks: a text, and an image.",
    execute() {
      const { content, ...more } = DOT;
      return ToolResult.blocks(content, more);
    },
  }),
  defineTool({
    name: "look_alike",
    description: "Returns a value that has the form of blocks.",
    execute: () => DOT,
  }),
  defineTool({
    name: "locate",
    description: "Is run by its caller.",
    parameters: WHO,
    returns: PLACE,
    execute: runByClient({ returns: PLACE }),
  }),
  defineTool({
    name: "locate_freely",
    description: "Is run by its caller, who is not told what must be returned.",
    parameters: WHO,
    returns: PLACE,
    execute: runByClient(),
  }),
  defineTool({
    name: "sleep",
    description: "Sleeps, and stops when it is aborted.",
    parameters: {
      type: "object",
      properties: { ms: { type: "number", minimum: 0 } },
      required: ["ms"],
    },
    async execute({ ms }, { signal }) {
      await pause(ms, signal);
      return { slept: ms };
    },
  }),
  defineTool({
    name: "hold",
    description: "Sends an event, and waits for release, or for its abort if it is not deaf.",
    parameters: {
      type: "object",
      properties: { deaf: { type: "boolean" }, flood: { type: "boolean" } },
    },
    async execute({ deaf = false, flood = false }, { metadata, signal }) {
      metadata({ i: 0 });
      const released = new Promise<void>((resolve) => held.add(resolve));
      let isOver = false;
      const end = released.finally(() => isOver = true);
      while (flood && !isOver) {
        for (let i = 0; i < EVENTS_OF_A_FLOOD; i++) metadata({ flood: true });
        await turn();
      }
      await (deaf ? end : Promise.race([end, aborted(signal)]));
      return { held: true };
    },
  }),
  defineTool({
    name: "release",
    description: "Ends all that is held.",
    execute() {
      for (const end of held) end();
      held.clear();
      return { released: true };
    },
  }),
  defineTool({
    name: "spin",
    description: "Makes a file, and keeps the JavaScript thread busy until it is gone.",
    parameters: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },
    execute({ file }) {
      writeFileSync(file, "");
      // The limit ends the busy process of a host that has crashed.
      const limit = performance.now() + 60_000;
      while (existsSync(file) && performance.now() < limit);
      return { spun: true };
    },
  }),
  defineTool({
    name: "progress",
    description: "Sends metadata n times.",
    parameters: {
      type: "object",
      properties: { n: { type: "integer", minimum: 0 } },
      required: ["n"],
    },
    execute({ n }, { sessionId, messageId, metadata }) {
      for (let i = 0; i < n; i++) metadata({ i });
      return { n, session: sessionId ?? null, message: messageId ?? null };
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
    name: "length",
    description: "Returns the length of a text.",
    parameters: { type: "object" },
    execute: ({ s }: { readonly s: string }) => ({ n: s.length }),
  }),
  defineTool({
    name: "pid",
    description: "Says which process runs the tools.",
    execute: () => ({ pid: process.pid }),
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

export const tasks = callTasks({ store: memoryCallStore() });

/** The suite sends arguments and results of 64 MiB. */
export const dispatch: ToolDispatcherOptions = {
  maxArgumentBytes: 256 * 1024 * 1024,
  maxOutputBytes: 512 * 1024 * 1024,
  graceMs: 60_000,
  // With a fixed key, tickets outlive a sidecar.
  tickets: sealedTickets({ keys: [new Uint8Array(32).fill(7)], store: memoryCallStore() }),
};
