/**
 * Runs an operation: builds the request, sends it through the port, reads the response.
 *
 * @module
 */

import { type ToolContext, ToolResult } from "../../../tool/mod.ts";
import { type Members, messageOf } from "../fields.ts";
import type { HttpFetch, HttpResponse } from "./http_fetch.ts";
import type { Authorize, HttpOperation } from "./operation.ts";
import { argumentPath, buildRequest, type BuiltRequest } from "./request.ts";
import { readResponse } from "./response.ts";
import { UnsendableArgument } from "./serialize.ts";

/** What runs operations. */
export interface Caller {
  readonly fetch: HttpFetch;
  readonly authorize: Authorize | undefined;
  readonly maxResponseBytes: number;
}

/** Runs one call of an operation at `server`. */
export async function callOperation(
  operation: HttpOperation,
  server: string,
  { fetch, authorize, maxResponseBytes }: Caller,
  args: Members,
  context: ToolContext,
): Promise<ToolResult> {
  const credentials = await authorize?.(operation, context) ?? {};
  let request: BuiltRequest;
  try {
    request = buildRequest(operation, server, args, credentials);
  } catch (cause) {
    if (!(cause instanceof UnsendableArgument)) throw cause;
    const { key, expected, message } = cause;
    return ToolResult.error("invalid_arguments", `Cannot send the arguments: ${message}`, {
      issues: [{ path: argumentPath(key), keyword: "custom", expected, message }],
    });
  }
  const { url, ...init } = request;
  // The arguments and the credentials are in the URL: messages name the template.
  const name = `${operation.method} ${operation.path}`;
  let response: HttpResponse;
  try {
    response = await fetch(url, { ...init, signal: context.signal, redirect: "manual" });
    return await readResponse(response, name, maxResponseBytes);
  } catch (cause) {
    context.throwIfAborted();
    return ToolResult.error(
      "threw",
      `Cannot get a response to ${name}: ${messageOf(cause).replaceAll(url, name).slice(0, 200)}`,
      { retryable: true },
    );
  }
}
