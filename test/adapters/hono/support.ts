/** A small registry and requests, for the tests of the HTTP handler. */

import { assert, assertEquals } from "@std/assert";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { defineTool, ToolRegistry } from "@plue/tools";

export const BASE = "http://localhost";

export function sampleRegistry(): ToolRegistry {
  return new ToolRegistry({
    tools: [
      defineTool({
        name: "echo",
        description: "Answers what it is given.",
        risk: "safe",
        category: "system",
        tags: ["read", "text"],
        parameters: {
          type: "object",
          properties: { text: { type: "string" } },
          required: ["text"],
          additionalProperties: false,
        },
        execute: ({ text }) => ({ text }),
      }),
      defineTool({
        name: "file-write",
        title: "Write a file",
        description: "Writes a file.",
        risk: "medium",
        category: "filesystem",
        tags: ["write"],
        execute: () => "written",
      }),
      defineTool({
        name: "rm",
        description: "Deletes everything.",
        risk: "critical",
        category: "terminal",
        execute: () => "gone",
      }),
      defineTool({
        name: "approve",
        namespace: "task",
        description: "Approves a task.",
        risk: "low",
        roles: ["control"],
        execute: () => "approved",
      }),
      defineTool({
        name: "secrets",
        description: "Lists the names of secrets.",
        risk: "low",
        scopes: ["secrets:read"],
        execute: () => [],
      }),
      defineTool({ name: "plan", description: "Only a definition.", risk: "safe" }),
    ],
  });
}

export function handler(options: ToolHandlerOptions = {}): ReturnType<typeof createToolHandler> {
  return createToolHandler(sampleRegistry(), options);
}

export interface Listing {
  readonly tools: readonly { readonly id: string; readonly [key: string]: unknown }[];
  readonly nextCursor?: string;
}

export interface ProblemBody {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly issues?: readonly { readonly path: string }[];
  readonly retryable?: boolean;
  readonly ran?: string;
  readonly pointer?: string;
}

export async function idsOf(response: Response): Promise<readonly string[]> {
  return (await response.json() as Listing).tools.map(({ id }) => id);
}

export async function problemOf(response: Response): Promise<ProblemBody> {
  const type = response.headers.get("content-type");
  if (type !== "application/problem+json") throw new Error(`Not a problem: ${type}`);
  const body = await response.json() as ProblemBody;
  if (body.status !== response.status) throw new Error("The body's status is another one");
  return body;
}

export function execution(
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
}

export async function execute(
  app: { request(url: string, init?: RequestInit): Response | Promise<Response> },
  id: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return await app.request(`${BASE}/tools/${id}/execute`, execution(body, headers));
}

/** Writes out `{x*9}`, which represents 9 times `x`. */
export function repeated(text: string): string {
  return text.replace(/\{(.)\*(\d+)\}/g, (_, one, count) => one.repeat(Number(count)));
}

/** Compares the expected members. Lists need as many items; `…` represents any text. */
export function assertMatches(actual: unknown, expected: unknown, at = "body"): void {
  if (typeof expected === "string" && expected.includes("…")) {
    const parts = expected.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    const pattern = new RegExp(`^${parts.join("[^]*")}$`);
    assert(pattern.test(String(actual)), `${at}: ${JSON.stringify(actual)} is not ${expected}`);
  } else if (typeof expected === "object" && expected !== null) {
    if (Array.isArray(expected)) assertEquals((actual as unknown[]).length, expected.length, at);
    for (const [name, value] of Object.entries(expected)) {
      assertMatches((actual as Record<string, unknown>)?.[name], value, `${at}/${name}`);
    }
  } else assertEquals(actual, expected, at);
}
