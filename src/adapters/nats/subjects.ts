/**
 * Names: of subjects, of buckets, and of tools in them.
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

/** The version of everything that is sent. Another one has other subjects, so both can run together. */
const ROOT = "plue.v1";

/** The bucket with the definitions of the tools, and who serves them. */
export const DIRECTORY = "plue_tools";
/** The bucket of {@linkcode natsCallStore}, unless it is told otherwise. */
export const CALLS_BUCKET = "plue_calls";
/** The stream of durable calls, and the bucket with their results. */
export const RUNS_STREAM = "PLUE_CALLS";
export const RESULTS_BUCKET = "plue_results";

/** Where a worker gets calls. The path of the tool follows. */
export const callSubject = (worker: string, path: string): string =>
  `${ROOT}.call.${worker}.${path}`;
/** Where a worker gets what the caller of a running call has to say. */
export const controlSubject = (worker: string, call: string): string =>
  `${ROOT}.ctl.${worker}.${call}`;
/** Where the workers of a registry say that they are there. */
export const presenceSubject = (registry: string, worker: string): string =>
  `${ROOT}.here.${registry}.${worker}`;
/** Where durable calls are kept until they have run. */
export const runSubject = (path: string): string => `${ROOT}.run.${path}`;
/**
 * Where the durable calls of one owner are kept. The last word says how large the call is, so that a
 * count of messages by subject is a measure of their bytes.
 *
 * @param size The call has at most two to the power of this many KiB.
 */
export const ownedRunSubject = (path: string, owner: string, size: number | "*"): string =>
  `${runSubject(path)}.${owner}.${size}`;

/** The check of the name of a registry, which is a word of a subject. */
export const checkRegistryName: Check<string> = must(
  '1 to 64 letters, digits, "_" or "-"',
  (value: unknown): value is string => typeof value === "string" && /^[\w-]{1,64}$/.test(value),
);

/** A word of a subject and of a key: neither can have a dot or a `~` in it. */
function word(text: string | undefined): string {
  return text === undefined ? "/" : text.replaceAll(".", "=");
}

/** Where the directory keeps what a worker serves. A dot and the number of a part follow. */
export const workerKey = (registry: string, worker: string): string =>
  `${registry}.worker.${worker}`;
/** Where the directory keeps a definition. */
export const toolKey = (path: string): string => path.replace(".", ".tool.");

/** `registry.namespace.name.digest`: names one definition of a tool. */
export function pathOf(registry: string, id: string, digest: string): string {
  const { namespace, name } = parseToolId(id);
  return `${registry}.${word(namespace)}.${word(name)}.${digest}`;
}

/** The id of the tool whose definition a path names. */
export function idOfPath(path: string): string {
  const [, namespace, name] = path.split(".").map((part) => part.replaceAll("=", "."));
  return namespace === "/" ? `${name}` : `${namespace}:${name}`;
}

/** What a caller needs of a tool in order to list, choose, check and call it. */
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

/** Eight bytes of the digest of what a caller is told of a tool. */
export function digestOfRecord(record: Record<string, unknown>): string {
  return createHash("sha256").update(canonicalJson(record)).digest().subarray(0, 8)
    .toString("base64url");
}
