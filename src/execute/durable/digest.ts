/** JSON as bytes, and digests of texts, of tools and of callers: SHA-256 in base64url. */

import { canonicalJson, describeTool, type Tool } from "../../tool/mod.ts";
import { frozenCopy } from "../json_value.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeJson(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

export function parseJson(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes));
}

export async function digestOf(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

/** A few bytes as letters, digits, `_` and `-`. */
export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const definitions = new WeakMap<Tool, Promise<string>>();

/** Returns the digest of a tool's public fields, and of a view's original tool. */
export function definitionDigest(tool: Tool): Promise<string> {
  let digest = definitions.get(tool);
  if (digest === undefined) {
    const told = [];
    for (let one: Tool | undefined = tool; one; one = one.view?.tool) told.push(describeTool(one));
    // JSON omits absent fields.
    digest = digestOf(canonicalJson(JSON.parse(JSON.stringify(told))));
    definitions.set(tool, digest);
  }
  return digest;
}

/** Stands for a principal in the keys of a store. */
export function ownerDigest(principal: string | undefined): Promise<string> {
  return digestOf(JSON.stringify(principal ?? null));
}

/**
 * The digest of a host's context, so that a result or an approval for one tenant does not count for
 * another; `undefined` for no context. Of a context that is not JSON only the members count that are:
 * others, such as a database, have nothing to compare.
 */
export async function contextDigest(context: unknown): Promise<string | undefined> {
  if (context === undefined) return undefined;
  const json = frozenCopy(context);
  return await digestOf(canonicalJson(json === undefined ? [membersOf(context)] : json));
}

function membersOf(context: unknown): Readonly<Record<string, unknown>> {
  const members = Object.entries(Object(context)).map(([name, value]) => [name, frozenCopy(value)]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}
