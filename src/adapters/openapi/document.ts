/** Reads an OpenAPI document: references, credentials, operations and servers. Fetches nothing. */

import * as kit from "../../formats/provider_kit.ts";
import { fragmentSteps } from "../../schema/mod.ts";
import * as check from "../../tool/mod.ts";
import { clip, isObject, pointerStep } from "../../tool/mod.ts";
import { TEMPLATE_PARAMETER } from "./build_request.ts";

/** The maximum length of a chain of references; a longer chain counts as a circle. */
export const MAX_HOPS = 32;

export interface Located<Value = kit.JsonRecord> {
  readonly value: Value;
  readonly path: string;
}

export interface FoundOperation {
  readonly method: string;
  readonly path: string;
  readonly item: Located;
  readonly operation: Located;
  readonly operationId: string | undefined;
}

export class ApiDocument {
  readonly root: kit.JsonRecord;
  /** True if schemas are in the dialect of OpenAPI 3.0. From 3.1 on they are JSON Schema. */
  readonly is30: boolean;
  readonly #charge: (part: unknown) => void;

  constructor(root: kit.JsonRecord, charge: (part: unknown) => void) {
    this.root = root;
    this.#charge = charge;
    this.is30 = (kit.textIn(root, "openapi") ?? "").startsWith("3.0");
  }

  /** The target of a local reference; `undefined` if it is missing or in another document. */
  at(ref: string): Located<unknown> | undefined {
    const steps = fragmentSteps(ref);
    if (steps === undefined) return undefined;
    let value: unknown = this.root;
    for (const step of steps) {
      if (!Object.hasOwn(Object(value), step)) return undefined;
      value = (value as kit.JsonRecord)[step];
    }
    return { value, path: steps.map(pointerStep).join("") };
  }

  /** An object of the document. References to it are followed. */
  resolve(value: unknown, path: string): Located | undefined {
    let at: Located<unknown> | undefined = { value, path };
    for (let hops = 0; hops < MAX_HOPS; hops++) {
      if (at === undefined || !isObject(at.value)) return undefined;
      const ref = at.value["$ref"];
      if (typeof ref !== "string") return { value: at.value, path: at.path };
      at = this.at(ref);
      this.#charge(at?.value);
    }
    return undefined;
  }
}

/** The parameters of `apiKey` schemes, as `in name`. Tools omit them: models have no credentials. */
export function credentialKeys(document: ApiDocument): ReadonlySet<string> {
  const schemes = kit.objectIn(kit.objectIn(document.root, "components"), "securitySchemes") ?? {};
  const keys = new Set<string>();
  for (const name of Object.keys(schemes)) {
    const scheme = document.resolve(schemes[name], "")?.value;
    const key = kit.textIn(scheme, "name");
    const place = kit.textIn(scheme, "in");
    if (kit.textIn(scheme, "type") !== "apiKey" || key === undefined || place === undefined) {
      continue;
    }
    keys.add(`${place} ${place === "header" ? key.toLowerCase() : key}`);
  }
  return keys;
}

export const METHOD_HINTS: ReadonlyMap<string, check.ToolAnnotations> = new Map<
  string,
  check.ToolAnnotations
>([
  ["get", { readOnlyHint: true, idempotentHint: true }],
  ["head", { readOnlyHint: true, idempotentHint: true }],
  ["options", { readOnlyHint: true, idempotentHint: true }],
  ["query", { readOnlyHint: true, idempotentHint: true }],
  ["put", { readOnlyHint: false, idempotentHint: true }],
  ["delete", { readOnlyHint: false, idempotentHint: true, destructiveHint: true }],
  ["post", { readOnlyHint: false }],
  ["patch", { readOnlyHint: false }],
]);

const REFUSED: ReadonlySet<string> = new Set(["trace", "connect", "track"]);

const METHOD = /^[A-Za-z]{1,32}$/;

export function isSendable(method: string): boolean {
  return METHOD.test(method) && !REFUSED.has(method.toLowerCase());
}

/** Finds the operations. Path items that cannot be read are rejected. */
export function findOperations(
  session: kit.ImportSession,
  document: ApiDocument,
): readonly FoundOperation[] {
  const found: FoundOperation[] = [];
  const paths = kit.objectIn(document.root, "paths") ?? {};
  for (const path of Object.keys(paths)) {
    if (path.startsWith("x-")) continue;
    const at = `/paths${pointerStep(path)}`;
    const item = document.resolve(paths[path], at);
    if (item === undefined) {
      const why = 'the path item must be an object, and its "$ref" must point into this document';
      session.reject(path, at, "$ref", `Cannot import "${clip(path)}": ${why}`);
      continue;
    }
    for (const [method, operation] of operationsOf(item)) {
      if (!session.count(operation.path)) return found;
      const operationId = kit.wordsIn(operation.value, "operationId");
      found.push({ method, path, item, operation, operationId });
    }
  }
  return found;
}

/** Yields the operations of a path, including the additional methods of OpenAPI 3.2. */
function* operationsOf(item: Located): Generator<[string, Located]> {
  for (const key of Object.keys(item.value)) {
    const value = item.value[key];
    if (key === "additionalOperations" && isObject(value)) {
      for (const method of Object.keys(value)) {
        const operation = value[method];
        const path = `${item.path}/${key}${pointerStep(method)}`;
        if (isObject(operation)) yield [method, { value: operation, path }];
      }
    } else if ((METHOD_HINTS.has(key) || REFUSED.has(key)) && isObject(value)) {
      yield [key, { value, path: `${item.path}/${key}` }];
    }
  }
}

/** Returns the name of each operation: the id if it is unique, otherwise method and path as words. */
export function nameOperations(
  found: readonly FoundOperation[],
): ReadonlyMap<FoundOperation, string> {
  const ids = check.groupBy(found, ({ operationId }) => operationId);
  const words = check.groupBy(found, pathName);
  return new Map(found.map((one) => {
    const { method, path, operationId } = one;
    if (operationId !== undefined && ids.get(operationId)?.length === 1) return [one, operationId];
    const name = pathName(one);
    return [one, words.get(name)?.length === 1 && !ids.has(name) ? name : `${method} ${path}`];
  }));
}

/** Returns method and path as a name: `get /pets/{petId}` is `get_pets_petId`. */
function pathName({ method, path }: FoundOperation): string {
  const words = path.split(/[{}/]/).filter((word) => word !== "");
  return [method.toLowerCase(), ...words].join("_");
}

/** Options that limit the addresses to which calls are sent. */
export interface ServerOptions {
  /**
   * The address of the API, such as `https://api.example.com/v1`, instead of the document's
   * `servers`. Set it for a document that you do not trust: otherwise the document decides where
   * calls are sent.
   */
  readonly baseUrl?: string;
  /**
   * The address of the document, such as `https://api.example.com/openapi.json`. Its relative
   * `servers` start there, and calls may go to its host, even in a private network.
   */
  readonly documentUrl?: string;
  /**
   * The only hosts that the document's `servers` may name, such as `api.example.com` or
   * `localhost:8080`. A host without a port allows all of its ports.
   *
   * @default {undefined} Every host, except this machine and private networks: addresses such as
   * `127.0.0.1`, `10.0.0.1`, `169.254.169.254` and `[::1]`, `localhost`, names without a dot, and
   * names in `.localhost`, `.local`, `.internal` and `.home.arpa`. Names are not resolved: pass a
   * `fetch` that checks addresses if a public name may point into a private network.
   */
  readonly allowedHosts?: readonly string[];
}

/** Returns an address without the `/` at the end; `undefined` if calls may not go to it. */
export function baseAddress(address: string, documentUrl?: string): string | undefined {
  const url = check.attemptOr(undefined, () => new URL(address, documentUrl));
  if (url === undefined) return undefined;
  const { protocol, username, password, search, hash, href } = url;
  if (protocol !== "https:" && protocol !== "http:") return undefined;
  if (username !== "" || password !== "" || search !== "" || hash !== "") return undefined;
  return href.endsWith("/") ? href.slice(0, -1) : href;
}

export interface FoundServer {
  readonly address: string | undefined;
  readonly problem: string;
}

export function findServer(servers: unknown, options: ServerOptions): FoundServer {
  const { documentUrl } = options;
  let problem = "No server has an address that calls may go to: give baseUrl";
  // In OpenAPI, an API without servers is at the root of the document's host.
  const listed = Array.isArray(servers) && servers.length > 0 ? servers : [{ url: "/" }];
  for (const server of listed) {
    const filled = fillIn(server);
    const address = filled === undefined ? undefined : baseAddress(filled, documentUrl);
    if (address === undefined) continue;
    if (isAllowed(new URL(address), options)) return { address, problem };
    const shown = clip(address, 100);
    problem = `Calls may not go to "${shown}": give its host in allowedHosts, or baseUrl`;
  }
  return { address: undefined, problem };
}

function isAllowed({ host, hostname }: URL, { allowedHosts, documentUrl }: ServerOptions): boolean {
  if (allowedHosts !== undefined) {
    return allowedHosts.some((allowed) => [host, hostname].includes(allowed.toLowerCase()));
  }
  if (documentUrl !== undefined && new URL(documentUrl).host === host) return true;
  return !isPrivateHost(hostname);
}

/** Names of this machine and of private networks, by RFC 6761, 6762, 8375 and by custom. */
const PRIVATE_NAME = /^[^.]*$|\.(?:localhost|local|internal|home\.arpa)$/;

/** Networks that are not public, with the length of their prefix. */
const PRIVATE_V4: readonly (readonly [network: string, bits: number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT
  ["127.0.0.0", 8], // loopback
  ["168.63.129.16", 32], // the host of Azure's virtual machines
  ["169.254.0.0", 16], // link-local; the metadata service of most clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarks
  ["224.0.0.0", 3], // multicast, reserved, broadcast
];

/** Global unicast, except Teredo, documentation and 6to4, which map to other addresses. */
const PUBLIC_V6 = /^\[(?!2001:(?::|1?[\da-f]{1,2}:|db8:)|2002:)[23][\da-f]{3}:/;

function isPrivateHost(hostname: string): boolean {
  if (hostname.startsWith("[")) return !PUBLIC_V6.test(hostname);
  const name = hostname.replace(/\.$/, "");
  if (!/^[\d.]+$/.test(name)) return PRIVATE_NAME.test(name);
  const address = numberOf(name);
  return PRIVATE_V4.some(([network, bits]) => (address ^ numberOf(network)) >>> (32 - bits) === 0);
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, byte) => sum << 8 | Number(byte), 0);
}

function fillIn(server: unknown): string | undefined {
  const url = kit.textIn(server, "url");
  if (url === undefined) return undefined;
  let isValid = true;
  const address = url.replace(TEMPLATE_PARAMETER, (_braces, name: string) => {
    const variable = kit.member(kit.objectIn(server, "variables"), name);
    const value = kit.textIn(variable, "default");
    isValid &&= value !== undefined && kit.listIn(variable, "enum")?.includes(value) !== false;
    return value ?? "";
  });
  return isValid ? address : undefined;
}
