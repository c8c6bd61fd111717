/** A service with a tool for everything that the page shows, for its tests and its pictures. */

import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { defineTool, type ToolDefinition, ToolRegistry, ToolResult } from "../../mod.ts";
import { explorer } from "../../src/explorer/mod.ts";
import { bearerAuth, createToolHandler, serveFormats } from "../../src/adapters/hono/mod.ts";
import { callTasks, memoryCallStore, storedTickets } from "../../src/adapters/calls/mod.ts";
import { journal } from "../../src/adapters/journal/mod.ts";
import { deny, type Rule, rules } from "../../src/adapters/rules/mod.ts";
import { codeMode } from "../../src/cli/code.ts";
import * as formats from "../../src/formats/mod.ts";
import { toolId } from "../../src/tool/mod.ts";
import data from "./tools.json" with { type: "json" };

/** A picture of 48 by 32 pixels. */
const PICTURE = btoa(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 32" width="480" height="320"><rect width="48" height="32" fill="#2d52c4"/><circle cx="24" cy="16" r="10" fill="#f0b95c"/></svg>',
);

/** State that tests can change while the service runs. */
export interface Controls {
  /** Starts the next step of `report:build`. */
  release(): void;
  /** Resolves when `report:build` waits for its next step. */
  waits(): Promise<void>;
  /** The number of aborted calls of `report:build`. */
  aborted: number;
  readonly registry: ToolRegistry;
}

type Input = Readonly<Record<string, unknown>>;

/** The functions of the tools of `tools.json`, by the ids of the tools. */
const EXECUTE: Readonly<Record<string, ToolDefinition["execute"]>> = {
  "files:search": (input) => {
    const { pattern, limit = 20 } = input as { pattern: string; limit?: number };
    return ["src/tool/tool.ts", "src/tool/id.ts", "src/select/roles.ts", "mod.ts"].slice(0, limit)
      .map((path, index) => ({ path, bytes: 1_200 * (index + 1), pattern }));
  },
  "shape:draw": () => ({ data: PICTURE, mimeType: "image/svg+xml" }),
  "task:approve": (input) => ({ ...input as Input, approved: true }),
  "task:status": () => "working",
  spawn_impl_session: () => "started",
  "git:commit": (input) => `[main 0a1b2c3] ${(input as Input)["message"]}`,
  "shell:run": () => ToolResult.error("denied", "No command is allowed here"),
  "deploy:release": async (input, context) => {
    const schema = { type: "object", properties: { region: { enum: ["eu", "us"] } } };
    const answer = await context.ask("where", { message: "Where to?", schema });
    return { ...input as Input, answer };
  },
  "secrets:list": () => ["DEPLOY_KEY"],
  "index:rebuild": () => "done",
};

/** Fields of the tools that JSON cannot contain. */
const MORE: Readonly<Record<string, Partial<ToolDefinition>>> = {
  "git:commit": {
    validate: (input) =>
      String((input as Input)["message"]).endsWith(".")
        ? "must not end with a full stop"
        : undefined,
  },
  "index:rebuild": { isAvailable: () => false },
};

/** The rule of a service that requires authorization. */
const SHORT: Rule = {
  name: "short messages",
  appliesTo: ({ id }) => id === "git:commit",
  decide: ({ arguments: args }) =>
    String((args as Input)["message"]).length > 40 ? deny("the message is too long") : "allow",
};

function toolsOf(controls: { step(signal: AbortSignal): Promise<void> }) {
  const build: ToolDefinition["execute"] = async function* (input, context) {
    const { title = "Untitled" } = input as { title?: string };
    for (let done = 1; done <= 3; done++) {
      context.progress(done, 3, `chapter ${done}`);
      yield `Chapter ${done} of ${title} is written`;
      await controls.step(context.signal);
    }
    context.metadata({ pages: 12 });
    return { title, chapters: 3 };
  };
  return (data as readonly ToolDefinition[]).map((definition): ToolDefinition => {
    const id = toolId(definition.name, definition.namespace);
    return { ...definition, ...MORE[id], execute: EXECUTE[id] ?? build };
  });
}

/** The tokens of a caller with access to explanations, and of one without. */
export const TOKENS = { owner: "owner-token-0123456789", other: "other-token-0123456789" };

/** A service that runs. */
export interface RunningService extends Controls {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Starts the service on a free port.
 *
 * @param options `authorizes`: true if it requires one of the tokens, and has a rule and a journal;
 * `more`: the number of further tools; `programs`: true if it runs programs.
 */
export async function startService({ authorizes = false, more = 0, programs = false }: {
  readonly authorizes?: boolean;
  readonly more?: number;
  readonly programs?: boolean;
} = {}): Promise<RunningService> {
  let arrival = Promise.withResolvers<void>();
  let next = Promise.withResolvers<void>();
  const state = {
    aborted: 0,
    async step(signal: AbortSignal): Promise<void> {
      next = Promise.withResolvers();
      signal.addEventListener("abort", () => {
        state.aborted++;
        next.reject(signal.reason);
      });
      arrival.resolve();
      await next.promise;
      arrival = Promise.withResolvers();
    },
  };
  const registry = new ToolRegistry({
    tools: [
      ...toolsOf(state),
      ...Array.from({ length: more }, (_, index) =>
        defineTool({
          namespace: `pack${index % 20}`,
          name: `tool-${String(index).padStart(4, "0")}`,
          description: `Does thing ${index}, one of many that a large catalogue has.`,
          risk: index % 3 === 0 ? "low" : "safe",
          tags: [`tag${index % 7}`],
          parameters: { type: "object", properties: { text: { type: "string" } } },
          execute: () => index,
        })),
    ],
  });
  const lines: string[] = [];
  const records = journal({
    sink: {
      append: (added) => Promise.resolve(void lines.push(...added)),
      async *pages() {
        yield new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
      },
    },
    ...{ onFailure: "refuse-calls", flushMs: 0 },
  });
  const app = createToolHandler(registry, {
    ...(programs && { tools: (await codeMode()).beside }),
    explorer,
    formats: serveFormats(formats),
    dispatch: {
      ...{ approve: "ask", tickets: storedTickets(memoryCallStore()) },
      ...(authorizes ? { layers: [records], rules: rules([SHORT]) } : {}),
    },
    tasks: callTasks({ store: memoryCallStore(), pollMs: 20 }),
    ...(authorizes
      ? {
        journal: records,
        authorize: bearerAuth({
          tokens: new Map([
            [TOKENS.owner, { principal: "owner", role: "control", explain: true }],
            [TOKENS.other, { principal: "other", maxRisk: "low" }],
          ]),
        }),
      }
      : { openExecution: true, openExplain: true }),
  });
  const server = await new Promise<ReturnType<typeof serve>>((resolve) => {
    const mounted = new Hono().route("/", app).route("/api/tools-of-mine", app);
    const own = serve({ fetch: mounted.fetch, hostname: "127.0.0.1", port: 0 }, () => resolve(own));
  });
  const { port } = server.address() as AddressInfo;
  return {
    registry,
    url: `http://127.0.0.1:${port}/`,
    release: () => next.resolve(),
    waits: () => arrival.promise,
    get aborted() {
      return state.aborted;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      if ("closeAllConnections" in server) server.closeAllConnections();
      await closed;
      await registry.dispose();
    },
  };
}
