/** Writes a call's arguments as an HTTP request. They cannot change the host or path of the API. */

import type { JsonRecord } from "../../formats/provider_kit.ts";
import { clip, fail } from "../../tool/mod.ts";
import * as serialize from "./serialize.ts";
import { type Pair, writePairs } from "./serialize.ts";

/** A parameter, and the argument with its value. */
export interface ParameterBinding extends serialize.ValueStyle {
  /** The property of the arguments. */
  readonly key: string;
  readonly name: string;
  readonly in: serialize.ParameterPlace;
}

/** The form of a body, and the arguments that it contains. */
export interface BodyBinding {
  /** The content type of the request. */
  readonly mediaType: string;
  readonly kind: "json" | "form" | "multipart" | "text";
  /**
   * `all`: the arguments are the body; `rest`: the arguments without parameters are the body;
   * `one`: the argument `key` is the body.
   */
  readonly from: "all" | "rest" | "one";
  readonly key?: string;
  /** The serialization of a form's members that differs from the default. */
  readonly encoding?: { readonly [member: string]: serialize.ValueStyle };
}

/** An operation of an API as data, from which {@linkcode buildRequest} makes requests. */
export interface HttpOperation {
  readonly operationId?: string;
  /** The HTTP method, in capitals. */
  readonly method: string;
  /** The path, with its parameters in braces. */
  readonly path: string;
  /** The address of the API, without a `/` at the end; absent if neither document nor options have one. */
  readonly server?: string;
  readonly parameters: readonly ParameterBinding[];
  readonly body?: BodyBinding;
  /** The document's security requirements, unchecked: alternatives, each with schemes and scopes. */
  readonly security?: readonly { readonly [scheme: string]: readonly string[] }[];
}

/** The credentials of a request. */
export interface Credentials {
  readonly headers?: { readonly [name: string]: string };
  readonly query?: { readonly [name: string]: string };
}

export interface BuiltRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
}

interface EncodedBody {
  readonly contentType: string;
  readonly text: string;
}

/** Builds a request. Throws `UnsendableArgument` for an argument that cannot be sent. */
export function buildRequest(
  operation: HttpOperation,
  server: string,
  args: JsonRecord,
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
    if (serialize.isNothing(value)) continue;
    switch (parameter.in) {
      case "query":
        query.push(...writePairs(name, value, parameter, key));
        break;
      case "cookie":
        cookies.push(...writePairs(name, value, parameter, key));
        break;
      case "header":
        headers.set(name.toLowerCase(), serialize.writeHeader(value, parameter, key));
    }
  }
  const body = bodyOf(operation, args, valueOf);
  if (body !== undefined) headers.set("content-type", body.contentType);
  if (cookies.length > 0) headers.set("cookie", cookies.map((pair) => pair.join("=")).join("; "));
  for (const [name, value] of Object.entries(credentials.headers ?? {})) {
    // The message of fetch would contain the value.
    if (/\0|[\r\n]./.test(value)) fail("send the request", `"${name}" must be one line`);
    headers.set(name.toLowerCase(), value);
  }
  const proof = Object.entries(credentials.query ?? {}).map(([name, value]): Pair => [
    serialize.encode(name, name),
    serialize.encode(value, name),
  ]);
  const pairs = [...query.filter(([name]) => !proof.some(([other]) => other === name)), ...proof];
  // As runtimes write it in their messages, from which it is removed.
  const { href: url } = new URL(
    `${server}${path}${pairs.length === 0 ? "" : "?"}${
      pairs.map((pair) => pair.join("=")).join("&")
    }`,
  );
  // A second defence: the encoding above already prevents requests outside of the API.
  if (!url.startsWith(`${server}/`)) {
    throw new serialize.UnsendableArgument("", "values that stay within the path of the operation");
  }
  return {
    url,
    method: operation.method,
    headers: Object.fromEntries(headers),
    ...(body === undefined ? {} : { body: body.text }),
  };
}

/** A parameter in a path template. A brace without its counterpart is text. */
export const TEMPLATE_PARAMETER: RegExp = /\{([^{}]*)\}/g;

function expandPath(operation: HttpOperation, valueOf: (key: string) => unknown): string {
  let last = "";
  const path = operation.path.replace(TEMPLATE_PARAMETER, (_braces, name: string) => {
    const parameter = operation.parameters.find((one) => one.in === "path" && one.name === name);
    if (parameter === undefined) return "";
    last = parameter.key;
    return serialize.writePath(name, valueOf(last), parameter, last);
  });
  if (hasDotSegment(path)) throw new serialize.UnsendableArgument(last, 'other than "." and ".."');
  return path;
}

/** The segments "." and "..", including their percent-encoded forms. */
const DOTS = /^(?:\.|%2e){1,2}$/i;

/** Returns true if URL parsers would shorten a path to the path of another resource. */
function hasDotSegment(path: string): boolean {
  return path.split("/").some((segment) => DOTS.test(segment));
}

const NOT_IN_PATH = /[?#\\\s\p{Cc}]/u;

/** Returns the problem of a path template, compared with the path parameters of the operation. */
export function pathProblem(path: string, parameters: ReadonlySet<string>): string | undefined {
  if (!path.startsWith("/")) return 'its path must begin with "/"';
  const names = new Set([...path.matchAll(TEMPLATE_PARAMETER)].map(([, name = ""]) => name));
  if (NOT_IN_PATH.test(path.replace(TEMPLATE_PARAMETER, ""))) {
    return "its path has a character that a path cannot contain";
  }
  if (hasDotSegment(path)) return 'its path has a segment "." or ".."';
  for (const name of names) {
    if (!parameters.has(name)) return `its path names "${clip(name)}", which is not a parameter`;
  }
  for (const name of parameters) {
    if (!names.has(name)) return `its parameter "${clip(name)}" is not in its path`;
  }
  return undefined;
}

function bodyOf(
  { body, parameters }: HttpOperation,
  args: JsonRecord,
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

/** Writes a body. `key` is the argument that becomes the body, or `""` if there are several. */
function encodeBody(value: unknown, binding: BodyBinding, key: string): EncodedBody {
  const { kind, mediaType } = binding;
  switch (kind) {
    case "json":
      return { contentType: mediaType, text: JSON.stringify(value) };
    case "text":
      return { contentType: `${mediaType}; charset=utf-8`, text: serialize.textOf(value) };
    case "form": {
      const pairs = formMembers(value, key).flatMap(([member, part]) =>
        formPairs(member, part, binding, key)
      );
      return { contentType: mediaType, text: pairs.map((pair) => pair.join("=")).join("&") };
    }
    case "multipart":
      return multipart(formMembers(value, key));
  }
}

function formMembers(value: unknown, key: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new serialize.UnsendableArgument(key, "an object");
  }
  return serialize.membersOf(value);
}

/** OpenAPI's default for the members of a form: lists are repeated, objects are JSON. */
const FORM: serialize.ValueStyle = { style: "form", explode: true };

function formPairs(
  member: string,
  part: unknown,
  { encoding = {} }: BodyBinding,
  key: string,
): Pair[] {
  const style = Object.hasOwn(encoding, member) ? encoding[member] : undefined;
  if (style !== undefined) return writePairs(member, part, style, key);
  const json = typeof part === "object" && part !== null && !Array.isArray(part);
  return writePairs(member, part, json ? { ...FORM, json } : FORM, key);
}

/** Encodes a form by RFC 7578, with text parts only. */
function multipart(members: readonly [string, unknown][]): EncodedBody {
  // The boundary is random, so that no argument can contain it and end its part early.
  const boundary = `plue-${crypto.randomUUID()}`;
  const parts = members.flatMap(([member, part]) =>
    (Array.isArray(part) ? part : [part]).map((item) => {
      const json = typeof item === "object" && item !== null;
      return `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(member)}"\r\n` +
        (json ? "content-type: application/json\r\n" : "") + `\r\n${serialize.textOf(item)}\r\n`;
    })
  );
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    text: `${parts.join("")}--${boundary}--\r\n`,
  };
}

/** Escapes a name as browsers do: a quote would end the name, and a line end would end the header. */
function quoted(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
