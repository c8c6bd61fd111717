/**
 * Where the calls of a document go: by its `servers`, as far as the options let it decide that.
 *
 * @module
 */

import { listIn, member, objectIn, textIn } from "../../formats/importer_kit.ts";
import { clip } from "../../tool/mod.ts";
import { splitTemplate } from "./build_request.ts";

/** The options that say where calls may go. */
export interface ServerOptions {
  /**
   * The address of the API, such as `https://api.example.com/v1`, instead of the document's
   * `servers`. Set it for a document that you do not trust: otherwise the document decides where
   * calls go.
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
  /** Values for the variables in the URLs of `servers`, in place of their defaults. */
  readonly serverVariables?: { readonly [name: string]: string };
}

/**
 * An address without a `/` at the end, if calls may go to it: HTTP, with a host, and without
 * credentials, query or fragment.
 *
 * @param documentUrl The base of relative addresses.
 */
export function baseAddress(address: string, documentUrl?: string): string | undefined {
  let url: URL;
  try {
    url = new URL(address, documentUrl);
  } catch {
    return undefined;
  }
  const { protocol, username, password, search, hash, href } = url;
  if (protocol !== "https:" && protocol !== "http:") return undefined;
  if (username !== "" || password !== "" || search !== "" || hash !== "") return undefined;
  return href.endsWith("/") ? href.slice(0, -1) : href;
}

/**
 * Returns the first server of a list that calls may go to, and the problems of the servers before
 * it.
 */
export interface FoundServer {
  readonly address: string | undefined;
  readonly problem: string;
}

/**
 * Finds the first server that calls may go to.
 *
 * @param servers A list of Server Objects, as the document has it.
 */
export function findServer(servers: unknown, options: ServerOptions): FoundServer {
  const { serverVariables = {}, documentUrl } = options;
  let problem = "No server has an address that calls may go to: give baseUrl";
  // OpenAPI: where there is no server, the API is at the root of the document's own host.
  const listed = Array.isArray(servers) && servers.length > 0 ? servers : [{ url: "/" }];
  for (const server of listed) {
    const filled = fillIn(server, serverVariables);
    const address = filled === undefined ? undefined : baseAddress(filled, documentUrl);
    if (address === undefined) continue;
    if (isAllowed(new URL(address), options)) return { address, problem };
    problem = `Calls may not go to "${
      clip(address, 100)
    }": give its host in allowedHosts, or baseUrl`;
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

/** Whether a host, as a URL writes it, is this machine or in a private network. */
function isPrivateHost(hostname: string): boolean {
  if (hostname.startsWith("[")) return !PUBLIC_V6.test(hostname);
  const name = hostname.replace(/\.$/, "");
  if (!/^[\d.]+$/.test(name)) return PRIVATE_NAME.test(name);
  const address = numberOf(name);
  return PRIVATE_V4.some(([network, bits]) => (address ^ numberOf(network)) >>> (32 - bits) === 0);
}

/** An IPv4 address in 32 bits. */
function numberOf(address: string): number {
  return address.split(".").reduce((sum, byte) => sum << 8 | Number(byte), 0);
}

function fillIn(
  server: unknown,
  variables: { readonly [name: string]: string },
): string | undefined {
  const url = textIn(server, "url");
  if (url === undefined) return undefined;
  let address = "";
  for (const { text, name } of splitTemplate(url)) {
    if (name === undefined) {
      address += text;
      continue;
    }
    const variable = member(objectIn(server, "variables"), name);
    const value = Object.hasOwn(variables, name) ? variables[name] : textIn(variable, "default");
    const allowed = listIn(variable, "enum");
    if (value === undefined || (allowed !== undefined && !allowed.includes(value))) {
      return undefined;
    }
    address += value;
  }
  return address;
}
