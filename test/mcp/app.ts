/**
 * Tools for the official clients, with a record of their calls, the same on every runtime. `GET
 * /watch` returns the actions of the tools and the held resources, `POST /grow` registers a tool.
 */

import { defineTool, ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { waitingTool } from "../runtime/http_app.ts";

/** The actions of the tools since the app was created. */
export interface Watch {
  started: number;
  aborted: number;
  cleaned: number;
  inFlight: number;
  /** The number of the registry's subscribers. */
  following: number;
  /** The number of armed timers. */
  timers: number;
}

const watch = { started: 0, aborted: 0, cleaned: 0, following: 0 };
const timers = new Set<unknown>();
watchTimers();

/** Counts the active timers of this program, by replacing the global functions. */
function watchTimers(): void {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
  type Timer = ReturnType<typeof setTimeout>;
  Object.assign(globalThis, {
    setTimeout(work: () => void, ms?: number) {
      const timer = setTimeout(() => {
        timers.delete(timer);
        work();
      }, ms);
      timers.add(timer);
      return timer;
    },
    setInterval(work: () => void, ms?: number) {
      const timer = setInterval(work, ms);
      timers.add(timer);
      return timer;
    },
    clearTimeout(timer: Timer | undefined) {
      timers.delete(timer);
      clearTimeout(timer);
    },
    clearInterval(timer: Timer | undefined) {
      timers.delete(timer);
      clearInterval(timer);
    },
  });
}

/** Counts the subscribers of the registry. */
function watchFollowers(followed: ToolRegistry): void {
  const subscribe = followed.subscribe.bind(followed);
  followed.subscribe = (listener, onEnd) => {
    const end = subscribe(listener, onEnd);
    let isCounted = true;
    watch.following++;
    return () => {
      if (isCounted) watch.following--;
      isCounted = false;
      end();
    };
  };
}

const registry: ToolRegistry = new ToolRegistry({
  tools: [
    defineTool({
      namespace: "math",
      name: "add",
      title: "Add",
      description: "Adds two numbers.",
      risk: "safe",
      tags: ["read-only"],
      icons: [{ src: "https://tools.example/add.png", mimeType: "image/png" }],
      parameters: {
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
      },
      returns: {
        type: "object",
        properties: { sum: { type: "number" } },
        required: ["sum"],
        additionalProperties: false,
      },
      execute: ({ a, b }) => ({ sum: a + b }),
    }),
    defineTool({
      name: "steps",
      description: "Says three times how far it has come.",
      async execute(_, { progress }) {
        for (const done of [1, 2, 3]) {
          progress(done, 3, `step ${done}`);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return "done";
      },
    }),
    waitingTool(watch),
    defineTool({
      name: "dot",
      description: "Answers an image.",
      execute: () =>
        ToolResult.blocks([{ type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" }]),
    }),
    defineTool({
      name: "secret",
      description: "Is for one role only.",
      roles: ["control"],
      execute: () => "for control",
    }),
    defineTool({
      name: "scoped",
      description: "Is for those who hold a scope.",
      scopes: ["files:write"],
      execute: () => "for holders",
    }),
  ],
});
watchFollowers(registry);
const dispatcher = new ToolDispatcher(registry);
const mcp = createMcpEndpoint(registry, {
  name: "plue-test",
  version: "1.2.3",
  dispatcher,
  pageSize: 2,
  heartbeatMs: 100,
  // Until this timeout, the timer of a body counts as held.
  bodyTimeoutMs: 2_000,
  maxStreamsPerPrincipal: 1_024,
  allowedOrigins: ["https://app.example"],
  cors: true,
  authorize(request) {
    switch (request.headers.get("authorization")) {
      case "Bearer control":
        return { role: "control", scopes: ["files:write"], principal: "control" };
      case "Bearer guest":
        return { principal: "guest" };
      default:
        return new Response(null, {
          status: 401,
          headers: { "www-authenticate": 'Bearer error="invalid_token"' },
        });
    }
  },
});

async function answer(request: Request, env?: unknown, context?: unknown): Promise<Response> {
  switch (new URL(request.url).pathname) {
    case "/mcp":
      return await mcp.fetch(request, env, context);
    case "/watch":
      return Response.json({
        ...watch,
        inFlight: dispatcher.metrics().inFlight,
        timers: timers.size,
      });
    case "/grow": {
      const { name, roles } = await request.json() as { name: string; roles?: string[] };
      if (!registry.unregisterTool(name)) {
        registry.registerTool({
          name,
          description: "Grew.",
          ...(roles === undefined ? {} : { roles }),
        });
      }
      return Response.json(registry.count);
    }
    case "/healthz":
      return new Response("ok");
    default:
      return new Response(null, { status: 404 });
  }
}

export default { fetch: answer };
