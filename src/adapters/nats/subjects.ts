/**
 * Names of subjects, streams and buckets, and of tools in them.
 *
 * @module
 */

import { createHash } from "node:crypto";
import {
  canonicalJson,
  type Check,
  isStandardSchema,
  must,
  parseToolId,
  type Tool,
} from "../../tool/mod.ts";

/** The version of the protocol. Each version has its own subjects, so that several can run together. */
const ROOT = "plue.v1";

/** The bucket of the directory: definitions of tools, and lists of their workers. */
export const DIRECTORY = "plue_tools";
/** The default bucket of {@linkcode natsCallStore}. */
export const CALLS_BUCKET = "plue_calls";
/** The stream of durable calls, and the bucket with their results. */
export const RUNS_STREAM = "PLUE_CALLS";
export const RESULTS_BUCKET = "plue_results";

/** The subject of calls to a worker, by the path of the tool. */
export const callSubject = (worker: string, path: string): string =>
  `${ROOT}.call.${worker}.${path}`;
/** The subject of a caller's messages about a call. */
export const controlSubject = (worker: string, call: string): string =>
  `${ROOT}.ctl.${worker}.${call}`;
/** The subject of a worker's presence messages. */
export const presenceSubject = (registry: string, worker: string): string =>
  `${ROOT}.here.${registry}.${worker}`;
/** The subject of durable calls in their stream. */
export const runSubject = (path: string): string => `${ROOT}.run.${path}`;
/**
 * The subject of a principal's durable calls. The last word is the size of the call, so that the counts
 * of messages by subject give their size.
 *
 * @param size The call has at most two to the power of this many KiB.
 */
export const ownedRunSubject = (path: string, owner: string, size: number | "*"): string =>
  `${runSubject(path)}.${owner}.${size}`;

/** Checks the name of a registry, which is a word of a subject. */
export const checkRegistryName: Check<string> = must(
  '1 to 64 letters, digits, "_" or "-"',
  (value: unknown): value is string => typeof value === "string" && /^[\w-]{1,64}$/.test(value),
);

/** Encodes a word of a subject and of a key: neither may contain a dot. */
function word(text: string | undefined): string {
  return text === undefined ? "/" : text.replaceAll(".", "=");
}

/** The key of a worker's list in the directory. A dot and the number of a part follow. */
export const workerKey = (registry: string, worker: string): string =>
  `${registry}.worker.${worker}`;
/** The key of a definition in the directory. */
export const toolKey = (path: string): string => path.replace(".", ".tool.");

/** Returns the path of a definition: `registry.namespace.name.digest`. */
export function pathOf(registry: string, id: string, digest: string): string {
  const { namespace, name } = parseToolId(id);
  return `${registry}.${word(namespace)}.${word(name)}.${digest}`;
}

/** Returns the id of the tool of a path. */
export function idOfPath(path: string): string {
  const [, namespace, name] = path.split(".").map((part) => part.replaceAll("=", "."));
  return namespace === "/" ? `${name}` : `${namespace}:${name}`;
}

/** Returns the definition that a caller needs in order to list, select, validate and call a tool. */
export function recordOf(tool: Tool): Record<string, unknown> {
  const record = {
    namespace: tool.namespace,
    name: tool.name,
    aliases: tool.aliases,
    title: tool.title,
    description: tool.description,
    version: tool.version,
    parameters: tool.parameters,
    returns: tool.returns,
    // A library's schema checks the context at the worker.
    context: isStandardSchema(tool.context) ? true : tool.context,
    category: tool.category,
    risk: tool.risk,
    tags: tool.tags,
    roles: tool.roles,
    scopes: tool.scopes,
    requiresApproval: tool.requiresApproval,
    annotations: tool.annotations,
    examples: tool.examples,
    icons: tool.icons,
    deprecated: tool.deprecated,
    timeoutMs: tool.timeoutMs,
    outputOverflow: tool.outputOverflow,
    idempotent: tool.idempotent,
    execution: tool.execution,
    meta: tool.meta,
    executable: tool.execute !== undefined,
  };
  // JSON omits undefined fields; an empty list is the default of its field.
  const fields = Object.entries(record)
    .filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return JSON.parse(JSON.stringify(Object.fromEntries(fields)));
}

/** Returns eight bytes of the digest of a definition. */
export function digestOfRecord(record: Record<string, unknown>): string {
  return createHash("sha256").update(canonicalJson(record)).digest().subarray(0, 8)
    .toString("base64url");
}
