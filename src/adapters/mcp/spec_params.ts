/**
 * What MCP's own schemas say of a request's params, in words that name the place and what would be
 * right there.
 *
 * @module
 */

import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  LOG_LEVEL_META_KEY,
  RELATED_TASK_META_KEY,
  specTypeSchemas,
} from "@modelcontextprotocol/server";
import { clip, describe, isObject, pointerStep } from "../../tool/mod.ts";
import { isRequest, VERSION_KEY } from "./request.ts";

/** One schema of MCP's, asked for what is wrong with a value. */
type Schema = (value: unknown) => readonly SchemaIssue[];

/** What a schema says: by the standard, and what the SDK's add to it. */
interface SchemaIssue {
  readonly path?: readonly unknown[] | undefined;
  readonly expected?: unknown;
  readonly values?: unknown;
}

/** A field of the params, as a way to it; none: the params themselves. */
type Rule = readonly [way: readonly string[], schema: Schema, isRequired?: true];

const META_RULES: readonly Rule[] = [
  [["_meta", RELATED_TASK_META_KEY], bySpec("RelatedTaskMetadata")],
];
/** What the newest revision has in every request. What is missing of it, the SDK says. */
const MODERN_META_RULES: readonly Rule[] = [
  ...META_RULES,
  [["_meta", VERSION_KEY], (value) => typeof value === "string" ? [] : [{ expected: "string" }]],
  [["_meta", CLIENT_INFO_META_KEY], bySpec("Implementation")],
  [["_meta", CLIENT_CAPABILITIES_META_KEY], bySpec("ClientCapabilities")],
  [["_meta", LOG_LEVEL_META_KEY], bySpec("LoggingLevel")],
];
const LEGACY_RULES: ReadonlyMap<unknown, readonly Rule[]> = new Map([
  ["initialize", [[[], bySpec("InitializeRequestParams"), true]]],
  ["logging/setLevel", [[["level"], bySpec("LoggingLevel"), true]]],
  ["tools/call", [[["task"], bySpec("TaskMetadata")]]],
]);
const MODERN_RULES: ReadonlyMap<unknown, readonly Rule[]> = new Map([
  ["subscriptions/listen", [[["notifications"], bySpec("SubscriptionFilter"), true]]],
]);

/**
 * Says what is wrong with the params of a request.
 *
 * @param place Where the message is.
 * @param isModern Whether it is of the newest revision.
 * @returns `undefined`: nothing, or the message is no request.
 */
export function wrongBySpec(
  message: unknown,
  place: string,
  isModern: boolean,
): string | undefined {
  if (!isRequest(message)) return undefined;
  const { method, params } = message;
  const rules = [
    ...(isModern ? MODERN_META_RULES : META_RULES),
    ...(isModern ? MODERN_RULES : LEGACY_RULES).get(method) ?? [],
  ];
  for (const [way, schema, isRequired] of rules) {
    const value = valueAt(params, way);
    if (value === undefined && isRequired !== true) continue;
    const [issue] = schema(value);
    if (issue === undefined) continue;
    const { path = [] } = issue;
    const where = ["params", ...way, ...path.map(String)].map(pointerStep).join("");
    const spot = `${place}${clip(where, MAX_PLACE)}`;
    const found = valueAt(value, path);
    return Array.isArray(issue.values) && typeof found === "string"
      ? `${spot} must be ${wanted(issue)}, not ${describe(found)}`
      : mustBe(spot, wanted(issue), found);
  }
  return undefined;
}

/** Says what must be at a place. The root's place is empty in JSON Pointer. */
export function mustBe(place: string, what: string, value: unknown): string {
  return `${place === "" ? "the body" : place} must be ${what}${butIs(value)}`;
}

/** Clients may choose the names of members, of any length. */
const MAX_PLACE = 200;
const WORDS: ReadonlyMap<unknown, string> = new Map([
  ["object", "an object"],
  ["record", "an object"],
  ["array", "an array"],
  ["string", "a string"],
  ["boolean", "true or false"],
  ["number", "a number"],
  ["int", "a whole number"],
]);

function wanted({ expected, values }: SchemaIssue): string {
  if (Array.isArray(values)) return `one of ${values.join(", ")}`;
  return WORDS.get(expected) ?? "what MCP has there";
}

function butIs(value: unknown): string {
  if (value === undefined) return ", and is absent";
  if (value === null) return ", not null";
  if (Array.isArray(value)) return ", not an array";
  return typeof value === "object" ? ", not an object" : `, not a ${typeof value}`;
}

function valueAt(value: unknown, way: readonly unknown[]): unknown {
  return way.reduce<unknown>(
    (part, step) =>
      isObject(part) || Array.isArray(part)
        // An index or a name: what is not there is undefined.
        ? (part as { readonly [step: string]: unknown })[String(step)]
        : undefined,
    value,
  );
}

function bySpec(name: keyof typeof specTypeSchemas): Schema {
  return (value) => specTypeSchemas[name]["~standard"].validate(value).issues ?? [];
}
