/**
 * Requests that are wrong in their form, refused in words that say where and what would be right.
 * The SDK refuses them too, and says so in the words of its validator or not at all.
 *
 * @module
 */

import {
  ProtocolErrorCode,
  SUPPORTED_PROTOCOL_VERSIONS,
  UnsupportedProtocolVersionError,
} from "@modelcontextprotocol/server";
import { isObject, MAX_DEPTH } from "../../tool/mod.ts";
import { isDeeper, isRequest, MODERN, VERSION_KEY } from "./request.ts";
import { mustBe, wrongBySpec } from "./spec_params.ts";

/** Why a body is refused. */
export interface Refusal {
  /** 400 where the form is wrong; 200 where a well-formed request asks for what cannot be. */
  readonly status: 200 | 400;
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** What JSON-RPC allows, bounded: ids and tokens are kept and sent back. */
const MAX_ID = 1_000;
/** As many as the SDK takes. */
const MAX_BATCH = 100;
/** What arguments may have, and the batch, the message and the params around them. */
const MAX_LEVELS = MAX_DEPTH + 3;
/** The revisions that have batches, or do not say that they have none. */
const WITH_BATCHES: ReadonlySet<string> = new Set(["2025-03-26", "2024-11-05", "2024-10-07"]);
const VERSIONS: readonly string[] = [MODERN, ...SUPPORTED_PROTOCOL_VERSIONS];
/** Longer is no version, and not to be said back. */
const MAX_VERSION = 32;

/**
 * Says what is wrong with the body of a request.
 *
 * @param body JSON.
 * @param version The header `mcp-protocol-version`.
 * @returns `undefined`: nothing that can be seen here.
 */
export function refusalOf(body: unknown, version: string | null): Refusal | undefined {
  if (isDeeper(body, MAX_LEVELS)) {
    const id = idOf(body);
    return malformed(`the body must have at most ${MAX_LEVELS} levels of objects and arrays`, id);
  }
  if (Array.isArray(body)) return batchRefusal(body, version);
  const wrong = wrongForm(body, "");
  if (wrong !== undefined) return malformed(wrong, idOf(body));
  return versionRefusal(body, version) ?? paramsRefusal(body, wrongParams(body, ""), 200);
}

/**
 * Says what is wrong with params that the SDK is to read, and would refuse as an error of its own.
 *
 * @param message One that `refusalOf` has looked at.
 */
export function specRefusalOf(message: unknown, version: string | null): Refusal | undefined {
  const isModern = version === MODERN;
  const wrong = wrongBySpec(message, "", isModern);
  // What the newest revision has around every request belongs to the form.
  const isForm = isModern && wrong?.startsWith("/params/_meta/") === true;
  return paramsRefusal(message, wrong, isForm ? 400 : 200);
}

function batchRefusal(batch: readonly unknown[], version: string | null): Refusal | undefined {
  if (version !== null && VERSIONS.includes(version) && !WITH_BATCHES.has(version)) {
    return malformed(`revision ${version} has no batches; send each message by itself`, null);
  }
  if (batch.length === 0 || batch.length > MAX_BATCH) {
    return malformed(`a batch must have 1 to ${MAX_BATCH} messages, not ${batch.length}`, null);
  }
  const ids = new Set<unknown>();
  let lists = 0;
  for (const [index, message] of batch.entries()) {
    const place = `/${index}`;
    const wrong = wrongForm(message, place) ?? wrongParams(message, place) ??
      wrongBySpec(message, place, false);
    if (wrong !== undefined) return malformed(wrong, null);
    const method = methodOf(message);
    if (method === "initialize") {
      return malformed(`${place}/method must not be initialize, which is sent by itself`, null);
    }
    // One small request has a large answer: a hundred of them would fill the memory.
    if (method === "tools/list" && ++lists > 1) {
      return malformed(`${place} lists the tools again: a batch may do so once`, null);
    }
    const id = isRequest(message) ? idOf(message) : null;
    if (id !== null && ids.has(id)) {
      return malformed(`${place}/id is the id of another request in the batch`, null);
    }
    ids.add(id);
  }
  return undefined;
}

function versionRefusal(message: unknown, version: string | null): Refusal | undefined {
  if (version === null || VERSIONS.includes(version) || methodOf(message) === "initialize") {
    return undefined;
  }
  // A client that names its revision in the request too is told of the two by the SDK.
  const meta = isObject(message) && isObject(message["params"]) && message["params"]["_meta"];
  if (version.length <= MAX_VERSION && isObject(meta) && VERSION_KEY in meta) return undefined;
  const requested = version.slice(0, MAX_VERSION);
  const { code, data } = new UnsupportedProtocolVersionError({
    supported: [...VERSIONS],
    requested,
  });
  const text = `Unsupported protocol version: the header mcp-protocol-version must be one of ${
    VERSIONS.join(", ")
  }, not ${JSON.stringify(requested)}`;
  return { status: 400, id: idOf(message), error: { code, message: text, data } };
}

function paramsRefusal(
  message: unknown,
  wrong: string | undefined,
  status: Refusal["status"],
): Refusal | undefined {
  if (wrong === undefined) return undefined;
  const text = `Cannot answer ${methodOf(message)}: ${wrong}`;
  return {
    status,
    id: idOf(message),
    error: { code: ProtocolErrorCode.InvalidParams, message: text },
  };
}

function malformed(wrong: string, id: Refusal["id"]): Refusal {
  const message = `Cannot read the request: ${wrong}`;
  return { status: 400, id, error: { code: ProtocolErrorCode.InvalidRequest, message } };
}

/** What is wrong with a message as JSON-RPC, at a place. */
function wrongForm(message: unknown, place: string): string | undefined {
  if (!isObject(message)) return mustBe(place, "an object", message);
  if (message["jsonrpc"] !== "2.0") return `${place}/jsonrpc must be "2.0"`;
  // An answer of the client; nothing here asks for one.
  if (!("method" in message) && ("result" in message || "error" in message)) return undefined;
  const { method, params } = message;
  if (typeof method !== "string") return mustBe(`${place}/method`, "a string", method);
  if ("id" in message && !isId(message["id"])) return `${place}/id must be ${AN_ID}`;
  if (params === undefined) return undefined;
  if (!isObject(params)) return mustBe(`${place}/params`, "an object", params);
  const meta = params["_meta"];
  if (meta === undefined) return undefined;
  if (!isObject(meta)) return mustBe(`${place}/params/_meta`, "an object", meta);
  const token = meta["progressToken"];
  if (token === undefined || isId(token)) return undefined;
  return `${place}/params/_meta/progressToken must be ${AN_ID}`;
}

/** What is wrong with what a well-formed message asks of the tools. */
function wrongParams(message: unknown, place: string): string | undefined {
  if (!isRequest(message)) return undefined;
  const { method } = message;
  const params = isObject(message.params) ? message.params : {};
  if (method === "tools/list") {
    const { cursor } = params;
    if (cursor === undefined || typeof cursor === "string") return undefined;
    return mustBe(
      `${place}/params/cursor`,
      "a string, the nextCursor of the page before",
      cursor,
    );
  }
  if (method !== "tools/call") return undefined;
  const { name, arguments: args } = params;
  if (typeof name !== "string") return mustBe(`${place}/params/name`, "a tool's name", name);
  if (args === undefined || isObject(args)) return undefined;
  return mustBe(`${place}/params/arguments`, "an object", args);
}

const AN_ID = `a whole number, or a string of at most ${MAX_ID} characters`;

function isId(value: unknown): value is string | number {
  return typeof value === "string" ? value.length <= MAX_ID : Number.isSafeInteger(value);
}

function idOf(message: unknown): Refusal["id"] {
  return isObject(message) && "method" in message && isId(message["id"]) ? message["id"] : null;
}

function methodOf(message: unknown): unknown {
  return isObject(message) ? message["method"] : undefined;
}
