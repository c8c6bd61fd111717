/** An app whose calls can be observed from outside, the same on every runtime. */

import { Hono } from "hono";
import { createToolHandler } from "@plue/tools/hono";
import { defineTool, type Tool, ToolDispatcher, ToolRegistry } from "@plue/tools";

/** The actions of the tools since the app was created. */
export interface Watch {
  started: number;
  /** The number of calls whose signal was aborted. */
  aborted: number;
  /** The number of calls that ran their cleanup. */
  cleaned: number;
  /** The number of chunks that the talking tool has yielded. */
  yielded: number;
  inFlight: number;
}

const CHUNK = "x".repeat(64_000);

/** A tool whose calls run until they are aborted, and which counts them. */
export function waitingTool(watch: Pick<Watch, "started" | "aborted" | "cleaned">): Tool {
  return defineTool({
    name: "wait",
    description: "Waits until it is aborted.",
    execute: (_, { signal, defer }) => {
      watch.started++;
      defer(() => void watch.cleaned++);
      return new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          watch.aborted++;
          reject(signal.reason);
        })
      );
    },
  });
}

/** Makes the app: the handler, and `GET /watch`. */
export function createWatchedApp(): Hono {
  const watch: Watch = { started: 0, aborted: 0, cleaned: 0, yielded: 0, inFlight: 0 };
  const registry = new ToolRegistry({
    tools: [
      waitingTool(watch),
      defineTool({
        name: "pour",
        description: "Yields without end.",
        async *execute(_, { defer }) {
          watch.started++;
          defer(() => void watch.cleaned++);
          for (;;) {
            watch.yielded++;
            yield CHUNK;
          }
        },
      }),
      defineTool({
        name: "echo",
        description: "Answers what it is given.",
        parameters: { type: "object", properties: { text: { type: "string" } } },
        execute: ({ text }) => text ?? null,
      }),
      defineTool({
        name: "grow",
        description: "Registers a tool.",
        execute: () => registry.registerTool({ name: "grown", description: "Is new." }).id,
      }),
    ],
  });
  const dispatcher = new ToolDispatcher(registry);
  return new Hono()
    .get("/watch", (c) => c.json({ ...watch, inFlight: dispatcher.metrics().inFlight }))
    .route(
      "/",
      createToolHandler(registry, {
        ...{ openExecution: true, dispatcher, heartbeatMs: 50, maxBodyBytes: 1_000 },
      }),
    );
}
