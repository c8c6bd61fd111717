/** Tools that the caller runs: the call waits for their result. */

import {
  checkText,
  createCheck,
  isObject,
  type JsonSchema,
  readFields,
  type ToolContext,
  ToolResult,
} from "../../tool/mod.ts";

const KEY = "client";

/** Options for {@linkcode runByClient}. */
export interface RunByClientOptions {
  /** The schema of the result: the `returns` of the tool. Without it, any JSON is valid. */
  readonly returns?: JsonSchema;
  /** The text of the question, for people who see it. */
  readonly message?: string;
}

const CHECKS = {
  returns: createCheck<JsonSchema>("a JSON Schema", isObject),
  message: checkText,
};

/**
 * The `execute` of a tool that the caller runs, such as one that needs a browser or a device. The
 * call waits with a question of the kind `client`, which has the arguments; the content of the
 * answer is the result, and must fit `returns`. Declining fails the call with `denied`.
 *
 * The dispatcher needs `tickets`, or the caller `onQuestion`, as for other questions. A turn lists
 * the call in `suspended`, HTTP responds with 202, and an MCP client shows a form. A result has at
 * most 64 KiB of JSON. A call with an invalid schema fails; pass the schema as the `returns` of the
 * tool, too, and it is checked when the tool is registered.
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
 * @param options The schema of the result.
 * @returns A function for the field `execute` of a tool.
 * @throws {TypeError} If an option is invalid.
 */
export function runByClient(
  options: RunByClientOptions = {},
  // The schema of the result validates it, so it has the tool's type.
): (params: unknown, context: ToolContext<never, never>) => Promise<never> {
  const { returns, message = "Run this tool, and answer with its result" } = readFields(
    "let the client run a tool",
    options,
    CHECKS,
  );
  const question = { kind: "client", message, ...(returns && { schema: returns }) } as const;
  return async (_params, { ask }) => {
    const answer = await ask(KEY, question);
    const result: unknown = answer.action === "accept"
      ? answer.content ?? null
      : ToolResult.error("denied", "The caller declined to run it");
    return result as never;
  };
}
