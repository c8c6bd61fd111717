/**
 * A plue service as a source: its tools, as its caller sees them, whose calls it runs.
 *
 * @module
 */

import { messagesOf } from "../../adapters/mcp/server_errors.ts";
import type { ToolExplanation } from "../../select/mod.ts";
import {
  isObject,
  makeTool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
} from "../../tool/mod.ts";
import { usageError } from "../terminal.ts";
import { callRemotely, type ServiceAddress } from "./remote_call.ts";

/** How many tools a page of a listing has. */
const PAGE = 1_000;

/** What a listing says of a tool that is not a field of its definition, or is done by the service. */
const NOT_DEFINED = ["id", "executable", "requiresApproval", "requiresTransaction"];

/**
 * Lists the tools of a service.
 *
 * @returns `undefined` if what answers is no plue service.
 * @throws {CommandError} If the service refuses.
 */
export async function readService(
  service: ServiceAddress,
  signal: AbortSignal,
): Promise<readonly Tool[] | undefined> {
  const tools: Tool[] = [];
  for (let cursor: string | undefined = "";;) {
    const query = new URLSearchParams({ limit: String(PAGE), ...(cursor && { cursor }) });
    const page = await readJson(service, `/tools?${query}`, signal);
    if (!isObject(page) || !Array.isArray(page["tools"])) return undefined;
    tools.push(...page["tools"].map((tool) => remoteTool(service, tool)));
    const { nextCursor } = page;
    if (typeof nextCursor !== "string") return tools;
    cursor = nextCursor;
  }
}

/** Asks a service why its caller does not see a tool; `undefined` if it does not say. */
export async function explainRemotely(
  service: ServiceAddress,
  id: string,
  signal: AbortSignal,
): Promise<ToolExplanation | undefined> {
  const path = `/tools/${encodeURIComponent(id)}/explain`;
  const answer = await readJson(service, path, signal).catch(() => undefined);
  return isObject(answer) && Array.isArray(answer["steps"])
    ? answer as unknown as ToolExplanation
    : undefined;
}

/**
 * Asks a server.
 *
 * @throws {CommandError} If nothing answers.
 */
export async function reach(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, request);
  } catch (cause) {
    request.signal?.throwIfAborted();
    throw usageError(`Cannot reach ${url}: ${messagesOf(cause)}`, { cause });
  }
}

/** Reads JSON; `undefined` where there is none. */
async function readJson(
  { url, headers }: ServiceAddress,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  const response = await reach(url + path, {
    headers: { accept: "application/json", ...headers },
    redirect: "manual",
    signal,
  });
  const type = response.headers.get("content-type") ?? "";
  const body: unknown = /\bjson\b/.test(type)
    ? await response.json().catch(() => undefined)
    : void await response.body?.cancel();
  if (response.ok) return body;
  // A problem of plue's own has a code; any other server just has no such route.
  if (isObject(body) && typeof body["code"] === "string" && typeof body["detail"] === "string") {
    if (body["code"] === "not_found") return undefined;
    const hint = response.status === 401 ? '; give a token with --header "authorization: …"' : "";
    throw usageError(`Cannot use the service ${url}: ${body["detail"]}${hint}`);
  }
  return undefined;
}

/** A tool that the service runs. */
function remoteTool(service: ServiceAddress, described: unknown): Tool {
  const fields = Object.fromEntries(
    Object.entries(isObject(described) ? described : {})
      .filter(([name]) => !NOT_DEFINED.includes(name)),
  );
  const { id } = (described ?? {}) as { readonly id?: unknown };
  const isExecutable = isObject(described) && described["executable"] !== false;
  return makeTool({
    ...fields as unknown as ToolDefinition,
    ...(isExecutable && {
      execute: (params: unknown, context: ToolContext) =>
        callRemotely(service, String(id), params, context),
    }),
  });
}
