/**
 * A call's arguments as an HTTP request. The host and the path of the API are fixed at import: no
 * argument can lead elsewhere.
 *
 * @module
 */

import { pointerStep } from "../../../tool/mod.ts";
import type { Members } from "../fields.ts";
import { encodeBody, type EncodedBody } from "./encode_body.ts";
import type { Credentials, HttpOperation } from "./operation.ts";
import {
  encode,
  isNothing,
  type Pair,
  UnsendableArgument,
  writeHeader,
  writePairs,
  writePath,
} from "./serialize.ts";
import { leadsUp, splitTemplate } from "./template.ts";

/** A request, ready to be sent. */
export interface BuiltRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
}

/**
 * Builds the request of a call.
 *
 * @throws {UnsendableArgument} If an argument cannot be sent where it has to go.
 */
export function buildRequest(
  operation: HttpOperation,
  server: string,
  args: Members,
  credentials: Credentials,
): BuiltRequest {
  const valueOf = (key: string): unknown => Object.hasOwn(args, key) ? args[key] : undefined;
  const path = expandPath(operation, valueOf);
  const headers = new Map<string, string>([[
    "accept",
    "application/json, text/*;q=0.9, */*;q=0.1",
  ]]);
  const query: Pair[] = [];
  const cookies: Pair[] = [];
  for (const parameter of operation.parameters) {
    const { key, name } = parameter;
    const value = valueOf(key);
    if (isNothing(value)) continue;
    switch (parameter.in) {
      case "query":
        query.push(...writePairs(name, value, parameter, key));
        break;
      case "cookie":
        cookies.push(...writePairs(name, value, parameter, key));
        break;
      case "header":
        headers.set(name.toLowerCase(), writeHeader(value, parameter, key));
    }
  }
  const body = readBody(operation, args, valueOf);
  if (body !== undefined) headers.set("content-type", body.contentType);
  if (cookies.length > 0) headers.set("cookie", cookies.map((pair) => pair.join("=")).join("; "));
  for (const [name, value] of Object.entries(credentials.headers ?? {})) {
    headers.set(name.toLowerCase(), value);
  }
  const proof = Object.entries(credentials.query ?? {}).map(([name, value]): Pair => [
    encode(name, name),
    encode(value, name),
  ]);
  const pairs = [
    ...query.filter(([name]) => !proof.some(([other]) => other === name)),
    ...proof,
  ];
  const url = `${server}${path}${pairs.length === 0 ? "" : "?"}${
    pairs.map((pair) => pair.join("=")).join("&")
  }`;
  // Nothing above can lead out of the API. If it did all the same, nothing is sent.
  if (!new URL(url).href.startsWith(`${server}/`)) {
    throw new UnsendableArgument("", "values that stay within the path of the operation");
  }
  return {
    url,
    method: operation.method,
    headers: Object.fromEntries(headers),
    ...(body === undefined ? {} : { body: body.text }),
  };
}

function expandPath(operation: HttpOperation, valueOf: (key: string) => unknown): string {
  let path = "";
  let last = "";
  for (const piece of splitTemplate(operation.path)) {
    if (piece.name === undefined) {
      path += piece.text;
      continue;
    }
    const parameter = operation.parameters.find(({ name, in: place }) =>
      place === "path" && name === piece.name
    );
    if (parameter === undefined) continue;
    last = parameter.key;
    path += writePath(piece.name, valueOf(last), parameter, last);
  }
  if (leadsUp(path)) {
    throw new UnsendableArgument(last, 'other than "." and ".."');
  }
  return path;
}

function readBody(
  { body, parameters }: HttpOperation,
  args: Members,
  valueOf: (key: string) => unknown,
): EncodedBody | undefined {
  if (body === undefined) return undefined;
  if (body.from === "one") {
    const { key = "" } = body;
    const value = valueOf(key);
    return value === undefined ? undefined : encodeBody(value, body, key);
  }
  const taken = new Set(body.from === "all" ? [] : parameters.map(({ key }) => key));
  const rest = Object.fromEntries(Object.entries(args).filter(([key]) => !taken.has(key)));
  return body.from === "rest" && Object.keys(rest).length === 0
    ? undefined
    : encodeBody(rest, body, "");
}

/** Where an argument stands, for an issue. */
export function argumentPath(key: string): string {
  return key === "" ? "" : pointerStep(key);
}
