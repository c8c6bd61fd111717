/** Tools that the caller runs: the call waits for their result. */

import * as check from "../../tool/mod.ts";
import { isObject, type JsonSchema, type ToolContext, ToolResult } from "../../tool/mod.ts";

const KEY = "client";

/** Options for {@linkcode runByClient}. */
export interface RunByClientOptions {
  /** The schema of the result: the `returns` of the tool. By default, any JSON value is valid. */
  readonly returns?: JsonSchema;
  /** The text of the question, for clients that show it to a person. */
  readonly message?: string;
}

const CHECKS = {
  returns: check.createCheck<JsonSchema>("a JSON Schema", isObject),
  message: check.checkText,
};

/**
 * Returns the `execute` of a tool that the caller runs, for example in a browser or on a device.
 * The call waits with a question of the kind `client`, which has the arguments. The content of the
 * answer is the result, and must match `returns`. If the caller declines, the call fails with
 * `denied`.
 *
 * As for other questions, the dispatcher needs `tickets`, or the caller needs `onQuestion`. A turn
 * lists the call in `suspended`, HTTP responds with 202, and an MCP client shows a form. A result
 * has at most 64 KiB of JSON. If the schema is invalid, each call fails. Also set `returns` of the
 * tool, so that the schema is checked at registration.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, isSuspended, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { memoryCallStore, runByClient, storedTickets } from "@plue/tools/calls";
 *
 * const returns = {
 *   type: "object",
 *   properties: { latitude: { type: "number" } },
 *   required: ["latitude"],
 * } as const;
 * const locate = defineTool({
 *   name: "locate",
 *   description: "Says where the user's device is.",
 *   returns,
 *   execute: runByClient({ returns }),
 * });
 * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [locate] }), {
 *   tickets: storedTickets(memoryCallStore()),
 * });
 *
 * const waiting = await dispatcher.dispatch({ name: "locate" });
 * assert.ok(isSuspended(waiting) && waiting.questions[0]?.kind === "client");
 * const result = await dispatcher.resume(waiting.ticket, {
 *   client: { action: "accept", content: { latitude: 41.9 } },
 * });
 * assert.deepEqual(result.ok && result.content, { latitude: 41.9 });
 * ```
 *
 * @returns A function for the field `execute` of a tool.
 * @throws {TypeError} If an option is invalid.
 */
export function runByClient(
  options: RunByClientOptions = {},
  // `returns` validates the result, so the result has the tool's type.
): (params: unknown, context: ToolContext<never, never>) => Promise<never> {
  const read = check.readFields("let the client run a tool", options, CHECKS);
  const { returns, message = "Run this tool, and answer with its result" } = read;
  const question = { kind: "client", message, ...(returns && { schema: returns }) } as const;
  return async (_params, { ask }) => {
    const answer = await ask(KEY, question);
    const result: unknown = answer.action === "accept"
      ? answer.content ?? null
      : ToolResult.error("denied", "The caller declined to run it");
    return result as never;
  };
}
