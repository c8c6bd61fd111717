/**
 * An HTTP response as the result of a call.
 *
 * @module
 */

import { type FailureCode, ToolResult } from "../../../tool/mod.ts";
import { messageOf } from "../fields.ts";
import type { HttpResponse } from "./http_fetch.ts";

/** How much of a refusal is read, and how much of it is passed on. */
const MAX_ERROR_BYTES = 16_384;
const MAX_ERROR_TEXT = 500;

/** Statuses that may pass. */
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Reads a response of at most `maxBytes`. */
export async function readResponse(
  response: HttpResponse,
  request: string,
  maxBytes: number,
): Promise<ToolResult> {
  const { status } = response;
  if (status < 200 || status > 299) return await refused(response, request);
  const bytes = await readBytes(response, maxBytes);
  if (bytes === undefined) {
    return ToolResult.error(
      "output_too_large",
      `The response to ${request} has more than ${maxBytes} bytes: ask for less`,
    );
  }
  if (bytes.length === 0) return ToolResult.ok(null);
  const type = mediaTypeOf(response);
  const text = new TextDecoder().decode(bytes);
  if (isJson(type)) {
    try {
      return ToolResult.ok(JSON.parse(text));
    } catch (cause) {
      return ToolResult.error(
        "invalid_result",
        `The response to ${request} is not the JSON that it says it is: ${
          messageOf(cause).slice(0, 200)
        }`,
      );
    }
  }
  if (type === "" || type.startsWith("text/") || type.endsWith("xml")) return ToolResult.ok(text);
  return ToolResult.error(
    "invalid_result",
    `The response to ${request} is of type "${type.slice(0, 100)}", and must be JSON or text`,
  );
}

/** The media type in lower case, without its parameters. */
function mediaTypeOf(response: HttpResponse): string {
  return (response.headers.get("content-type") ?? "").split(";", 1).join("").trim().toLowerCase();
}

/** Whether a media type is JSON. */
export function isJson(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

async function refused(response: HttpResponse, request: string): Promise<ToolResult> {
  const { status } = response;
  if (status < 200 || (status >= 300 && status < 400)) {
    await response.body?.getReader().cancel();
    return ToolResult.error(
      "threw",
      `The API answered ${request} with status ${status}, a redirect, which is not followed`,
    );
  }
  const bytes = await readBytes(response, MAX_ERROR_BYTES, "clip");
  const type = mediaTypeOf(response);
  const legible = type === "" || isJson(type) || type.startsWith("text/");
  const said = legible ? new TextDecoder().decode(bytes ?? new Uint8Array()).trim() : "";
  const text = said.length > MAX_ERROR_TEXT ? `${said.slice(0, MAX_ERROR_TEXT - 1)}…` : said;
  return ToolResult.error(
    codeFor(status),
    `The API answered ${request} with status ${status}${text === "" ? "" : `: ${text}`}`,
    { retryable: RETRYABLE.has(status) },
  );
}

function codeFor(status: number): FailureCode {
  switch (status) {
    case 400:
    case 422:
      return "invalid_arguments";
    case 401:
    case 403:
      return "denied";
    case 429:
      return "overloaded";
    default:
      return "threw";
  }
}

/** The bytes of a body; with more than `max` of them `undefined`, or the first of them. */
async function readBytes(
  { body }: HttpResponse,
  max: number,
  beyond: "refuse" | "clip" = "refuse",
): Promise<Uint8Array | undefined> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done || value === undefined) break;
    chunks.push(value);
    size += value.length;
    if (size > max) {
      await reader.cancel();
      if (beyond === "refuse") return undefined;
      break;
    }
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes.slice(0, max);
}
