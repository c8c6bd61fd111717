/** A service with a tool for everything that the page shows, for its tests and its pictures. */

import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { defineTool, type Tool, ToolRegistry, ToolResult } from "../../mod.ts";
import { explorer } from "../../src/explorer/mod.ts";
import { bearerAuth, createToolHandler, serveFormats } from "../../src/adapters/hono/mod.ts";
import { callTasks, memoryCallStore, storedTickets } from "../../src/adapters/calls/mod.ts";
import * as formats from "../../src/formats/mod.ts";

/** A picture of 48 by 32 pixels. */
const PICTURE = btoa(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 32" width="480" height="320"><rect width="48" height="32" fill="#2d52c4"/><circle cx="24" cy="16" r="10" fill="#f0b95c"/></svg>',
);

/** State that tests can change while the service runs. */
export interface Controls {
  /** Lets the next step of `report:build` happen. */
  release(): void;
  /** Resolves when `report:build` waits for its next step. */
  waits(): Promise<void>;
  /** The number of aborted calls of `report:build`. */
  aborted: number;
  readonly registry: ToolRegistry;
}

function toolsOf(controls: { step(signal: AbortSignal): Promise<void> }): readonly Tool[] {
  return [
    defineTool({
      namespace: "files",
      name: "search",
      title: "Search files",
      description: "Finds files by their name and content. The newest come first.",
      risk: "safe",
      category: "filesystem",
      tags: ["read-only", "files"],
      parameters: {
        type: "object",
        properties: {
          pattern: {
            type: "string",
            minLength: 1,
            maxLength: 200,
            description: "A glob, such as src/**/*.ts",
          },
          limit: { type: "integer", minimum: 1, maximum: 100, default: 20 },
          since: { type: "string", format: "date", description: "Only files changed since then" },
          sort: { enum: ["newest", "oldest", "name"] },
          hidden: { type: "boolean" },
          options: {
            type: "object",
            description: "How far to look",
            properties: {
              depth: { type: "integer", minimum: 0, maximum: 20 },
              exclude: { type: "array", items: { type: "string" }, maxItems: 5 },
            },
            additionalProperties: false,
          },
        },
        required: ["pattern"],
        additionalProperties: false,
      },
      returns: {
        type: "array",
        items: {
          type: "object",
          properties: { path: { type: "string" }, bytes: { type: "integer" } },
        },
      },
      examples: [{ description: "Sources", input: { pattern: "src/**/*.ts", limit: 3 } }],
      execute: ({ pattern, limit = 20 }) =>
        ["src/tool/tool.ts", "src/tool/id.ts", "src/select/roles.ts", "mod.ts"]
          .slice(0, limit)
          .map((path, index) => ({ path, bytes: 1_200 * (index + 1), pattern })),
    }),
    defineTool({
      namespace: "shape",
      name: "draw",
      description: "Draws a shape, and answers the picture.",
      risk: "safe",
      category: "editor",
      tags: ["image"],
      parameters: {
        type: "object",
        properties: {
          shape: {
            oneOf: [
              {
                title: "Circle",
                type: "object",
                properties: {
                  kind: { const: "circle" },
                  radius: { type: "number", exclusiveMinimum: 0 },
                },
                required: ["kind", "radius"],
              },
              {
                title: "Polygon",
                type: "object",
                properties: {
                  kind: { const: "polygon" },
                  points: {
                    type: "array",
                    minItems: 3,
                    items: {
                      type: "array",
                      prefixItems: [{ type: "number" }, { type: "number" }],
                      items: false,
                    },
                  },
                },
                required: ["kind", "points"],
              },
            ],
          },
          colours: {
            type: "object",
            additionalProperties: { type: "string", pattern: "^#[0-9a-f]{6}$" },
          },
          parent: { $ref: "#/$defs/node" },
        },
        required: ["shape"],
        $defs: {
          node: {
            type: "object",
            properties: { label: { type: ["string", "null"] }, next: { $ref: "#/$defs/node" } },
          },
        },
      },
      execute: () => ({ data: PICTURE, mimeType: "image/svg+xml" }),
    }),
    defineTool({
      namespace: "report",
      name: "build",
      description: "Builds a report in three steps, and says how far it is.",
      risk: "low",
      category: "workspace",
      tags: ["slow"],
      parameters: { type: "object", properties: { title: { type: "string" } } },
      async *execute({ title = "Untitled" }, context) {
        for (let done = 1; done <= 3; done++) {
          context.progress(done, 3, `chapter ${done}`);
          yield `Chapter ${done} of ${title} is written`;
          await controls.step(context.signal);
        }
        context.metadata({ pages: 12 });
        return { title, chapters: 3 };
      },
    }),
    defineTool({
      namespace: "task",
      name: "approve",
      description: "Approves a task.",
      risk: "medium",
      category: "system",
      roles: ["control"],
      parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      execute: ({ id }) => ({ id, approved: true }),
    }),
    defineTool({
      namespace: "task",
      name: "status",
      description: "Tells how far a task is.",
      risk: "safe",
      category: "system",
      roles: ["control", "impl"],
      execute: () => "working",
    }),
    defineTool({
      name: "spawn_impl_session",
      description: "Starts a session that implements a task.",
      risk: "high",
      category: "terminal",
      roles: ["control"],
      execute: () => "started",
    }),
    defineTool({
      namespace: "git",
      name: "commit",
      description: "Commits the staged changes.",
      risk: "medium",
      category: "git",
      parameters: {
        type: "object",
        properties: { message: { type: "string", minLength: 3 } },
        required: ["message"],
      },
      validate: ({ message }) =>
        message.endsWith(".") ? "must not end with a full stop" : undefined,
      execute: ({ message }) => `[main 0a1b2c3] ${message}`,
    }),
    defineTool({
      namespace: "shell",
      name: "run",
      description: "Runs a command.",
      risk: "critical",
      category: "terminal",
      execute: () => ToolResult.error("denied", "No command is allowed here"),
    }),
    defineTool({
      namespace: "deploy",
      name: "release",
      description: "Releases a version, once somebody has approved it.",
      risk: "high",
      category: "system",
      requiresApproval: true,
      parameters: {
        type: "object",
        properties: { version: { type: "string" } },
        required: ["version"],
      },
      async execute({ version }, context) {
        const answer = await context.ask("where", {
          message: "Where to?",
          schema: { type: "object", properties: { region: { enum: ["eu", "us"] } } },
        });
        return { version, answer };
      },
    }),
    defineTool({
      namespace: "secrets",
      name: "list",
      description: "Lists the names of secrets.",
      risk: "low",
      category: "system",
      scopes: ["secrets:read"],
      execute: () => ["DEPLOY_KEY"],
    }),
    defineTool({
      namespace: "index",
      name: "rebuild",
      description: "Builds the index anew.",
      risk: "low",
      category: "search",
      isAvailable: () => false,
      execute: () => "done",
    }),
  ];
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
 * @param options `authorizes`: true if it requires one of the tokens; `more`: the number of further
 * tools.
 */
export async function startService({
  authorizes = false,
  more = 0,
}: { readonly authorizes?: boolean; readonly more?: number } = {}): Promise<RunningService> {
  let release = (): void => {};
  let arrived = (): void => {};
  let isWaiting = new Promise<void>((resolve) => (arrived = resolve));
  const state = {
    aborted: 0,
    async step(signal: AbortSignal): Promise<void> {
      await new Promise<void>((resolve, reject) => {
        release = resolve;
        signal.addEventListener("abort", () => {
          state.aborted++;
          reject(signal.reason);
        });
        arrived();
      });
      isWaiting = new Promise<void>((resolve) => (arrived = resolve));
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
  const app = createToolHandler(registry, {
    explorer,
    formats: serveFormats(formats),
    dispatch: { approve: "ask", tickets: storedTickets(memoryCallStore()) },
    tasks: callTasks({ store: memoryCallStore(), pollMs: 20 }),
    ...(authorizes
      ? {
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
    release: () => release(),
    waits: () => isWaiting,
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
