/** Runs operations over HTTP: adds credentials, sends the request with `fetch`, reads the response. */

import type { JsonRecord } from "../../formats/provider_kit.ts";
import * as check from "../../tool/mod.ts";
import { clip, pointerStep, type ToolContext, ToolResult } from "../../tool/mod.ts";
import { fetchOnce, readText, wasNotSent } from "../http/runtime.ts";
import { isJson, plainType } from "./request_body.ts";
import {
  buildRequest,
  type BuiltRequest,
  type Credentials,
  type HttpOperation,
} from "./build_request.ts";
import { UnsendableArgument } from "./serialize.ts";

/** The fields of a request. Redirects are not followed: they could send credentials to another host. */
type HttpRequest = Omit<BuiltRequest, "url"> & {
  readonly signal: AbortSignal;
  readonly redirect: "manual";
};

/** Sends a request, such as the global `fetch`. */
export type HttpFetch = (
  url: string,
  request: HttpRequest,
) => Promise<Pick<Response, "status" | "headers" | "body">>;

/** Returns the credentials for one request. */
export type CredentialSource = (
  operation: HttpOperation,
  context: ToolContext,
) => Credentials | Promise<Credentials>;

export interface HttpClient {
  readonly fetch: HttpFetch;
  readonly authorize?: CredentialSource;
  /** The callers' credentials that `authorize` may use. */
  readonly credentials?: check.ToolCredentials;
  readonly maxResponseBytes: number;
}

export async function callOperation(
  operation: HttpOperation,
  server: string,
  { fetch, authorize, credentials: declared = {}, maxResponseBytes }: HttpClient,
  args: JsonRecord,
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
      // If there is no key, the issue is about the arguments as a whole.
      issues: [{ path: key === "" ? "" : pointerStep(key), keyword: "custom", expected, message }],
      ran: "no",
    });
  }
  const { url, ...init } = request;
  // Messages contain the path template instead of the URL, which has arguments and credentials.
  const name = `${operation.method} ${operation.path}`;
  try {
    const send: HttpFetch = fetch === globalThis.fetch ? fetchOnce : fetch;
    const response = await send(url, { ...init, signal: context.signal, redirect: "manual" });
    for (const name of response.status === 401 ? Object.keys(declared) : []) {
      const credential = context.credential(name);
      const isSent = JSON.stringify(credentials).includes(credential.token);
      if (isSent) await credential.reject().catch(check.noop);
    }
    return await readResponse(response, name, maxResponseBytes);
  } catch (cause) {
    context.throwIfAborted();
    const why = clip(check.describeThrown(cause, Infinity).replaceAll(url, name), 200);
    return ToolResult.error("threw", `Cannot get a response to ${name}: ${why}`, {
      retryable: true,
      ran: wasNotSent(cause) ? "no" : "unknown",
    });
  }
}

/** The maximum size of an error response in bytes, and of its text in a message in characters. */
const MAX_ERROR_BYTES = 16_384;
const MAX_ERROR_TEXT = 500;

const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

const CODES: ReadonlyMap<number, check.FailureCode> = new Map([
  [400, "invalid_arguments"],
  [401, "denied"],
  [403, "denied"],
  [422, "invalid_arguments"],
  [429, "overloaded"],
]);

async function readResponse(
  response: Awaited<ReturnType<HttpFetch>>,
  request: string,
  maxBytes: number,
): Promise<ToolResult> {
  const { status, headers } = response;
  const isSuccess = status >= 200 && status <= 299;
  const reader = response.body?.getReader();
  if (status < 200 || (status >= 300 && status < 400)) {
    await reader?.cancel();
    return ToolResult.error(
      "threw",
      `The API answered ${request} with status ${status}, a redirect, which is not followed`,
      { ran: "unknown" },
    );
  }
  const { text, isWhole } = await readText(reader, isSuccess ? maxBytes : MAX_ERROR_BYTES);
  if (!isWhole) await reader?.cancel();
  const type = plainType(headers.get("content-type") ?? "");
  if (!isSuccess) return failureOf(status, type, text, request);
  if (!isWhole) {
    return ToolResult.error(
      "output_too_large",
      `The response to ${request} has more than ${maxBytes} bytes; request less`,
    );
  }
  if (text === "") return ToolResult.ok(null);
  if (isJson(type)) {
    try {
      return ToolResult.ok(JSON.parse(text));
    } catch {
      // Without the error, which may quote a part of a credential.
      return ToolResult.error("invalid_result", `The response to ${request} is not JSON`);
    }
  }
  if (type === "" || type.startsWith("text/") || type.endsWith("xml")) return ToolResult.ok(text);
  return ToolResult.error(
    "invalid_result",
    `The response to ${request} is of type "${type.slice(0, 100)}", and must be JSON or text`,
  );
}

function failureOf(status: number, type: string, text: string, request: string): ToolResult {
  const isLegible = type === "" || isJson(type) || type.startsWith("text/");
  const quoted = isLegible ? clip(text.trim(), MAX_ERROR_TEXT) : "";
  // A rejected request did not run.
  const ran = status < 500 || status === 501 || status === 503 ? "no" : "unknown";
  return ToolResult.error(
    CODES.get(status) ?? "threw",
    `The API answered ${request} with status ${status}${quoted === "" ? "" : `: ${quoted}`}`,
    { retryable: RETRYABLE.has(status), ran },
  );
}
