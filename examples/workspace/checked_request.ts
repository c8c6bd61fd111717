/**
 * One HTTP request, to an address that was checked. The host name is resolved once, all its
 * addresses are checked, and the connection goes to one of them. A second look-up could give
 * another address (DNS rebinding).
 *
 * @module
 */

import { lookup as systemLookup } from "node:dns";
import { type IncomingMessage, request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from "node:net";
import { errorCode, Refusal } from "./refusal.ts";

/** An address of a name. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves a name to all its addresses. */
export type Resolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** What to request. */
export interface CheckedRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array | undefined;
  readonly signal: AbortSignal;
  /** Addresses that are not public are allowed too: all of them, or those in the list. */
  readonly allowPrivate: boolean | readonly string[];
  readonly resolve?: Resolver | undefined;
}

/** Asks the operating system. */
export const systemResolver: Resolver = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });

/**
 * Sends the request, and resolves with the head of the response. Redirects are not followed.
 *
 * @throws {Refusal} If an address is not allowed, or nothing answers.
 */
export async function sendChecked(options: CheckedRequest): Promise<IncomingMessage> {
  const { url, method, headers, body, signal } = options;
  signal.throwIfAborted();
  const addresses = await allowedAddresses(options);
  const requestOptions: RequestOptions = {
    method,
    // No agent: it could reuse a connection that was checked for another call.
    agent: false,
    host: bareHost(url),
    port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: {
      ...Object.fromEntries(headers),
      ...(body === undefined ? {} : { "content-length": String(body.length) }),
      "accept-encoding": "identity",
      connection: "close",
    },
    lookup: pinned(addresses),
    signal,
  };
  return await new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(
      requestOptions,
      resolve,
    );
    // Not `once`: a response that is discarded may fail a second time.
    request.on("error", (error) => {
      reject(signal.aborted ? signal.reason : networkRefusal(url, error));
    });
    request.end(body);
  });
}

async function allowedAddresses(
  { url, allowPrivate, signal, resolve = systemResolver }: CheckedRequest,
): Promise<readonly ResolvedAddress[]> {
  const isAllowed = (address: string) =>
    typeof allowPrivate === "boolean" ? allowPrivate : allowPrivate.includes(address);
  const host = bareHost(url);
  const family = isIP(host);
  let addresses: readonly ResolvedAddress[];
  try {
    addresses = family !== 0
      ? [{ address: host, family }]
      : await Promise.race([resolve(host), aborted(signal)]);
  } catch (error) {
    signal.throwIfAborted();
    throw networkRefusal(url, error);
  }
  // A single private address is enough to refuse the name: it may be a rebinding attack.
  if (
    addresses.length === 0 ||
    !addresses.every(({ address }) => isPublicAddress(address) || isAllowed(address))
  ) {
    throw new Refusal(
      "denied",
      `Cannot fetch from "${url.host}": it is not an address of the public internet`,
      { pointer: "/url" },
    );
  }
  return addresses;
}

/** Rejects when the call is aborted. A name server may never answer. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** The host without the brackets of an IPv6 address. */
function bareHost(url: URL): string {
  return url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
}

/** A look-up that knows only the addresses that were checked. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, options, callback) => {
    const wanted = options.family === 4 || options.family === 6 ? options.family : undefined;
    const usable = addresses.filter(({ family }) => wanted === undefined || family === wanted);
    const first = usable[0];
    if (first === undefined) {
      callback(Object.assign(new Error("no usable address"), { code: "ENOTFOUND" }), "", 0);
    } else if (options.all === true) callback(null, usable.map((one) => ({ ...one })));
    else callback(null, first.address, first.family);
  };
}

const NETWORK_ERRORS: ReadonlyMap<string, string> = new Map([
  ["ENOTFOUND", "its name is not known"],
  ["EAI_AGAIN", "its name could not be looked up"],
  ["ECONNREFUSED", "it refused the connection"],
  ["ECONNRESET", "it closed the connection"],
  ["ETIMEDOUT", "it did not answer"],
  ["EHOSTUNREACH", "it cannot be reached"],
  ["ENETUNREACH", "it cannot be reached"],
  ["CERT_HAS_EXPIRED", "its certificate has expired"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "its certificate is not signed by an authority"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "its certificate is not signed by a known authority"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "its certificate is not signed by a known authority"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "its certificate is for another name"],
]);

/** A refusal with the network's error in words. */
export function networkRefusal(url: URL, error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const code = errorCode(error);
  const why = NETWORK_ERRORS.get(code ?? "") ?? `the network answered ${code ?? "an error"}`;
  return new Refusal("unavailable", `Cannot fetch from "${url.host}": ${why}`, {
    pointer: "/url",
    cause: error,
  });
}

/** IPv4 networks that are not public, as address and prefix length. */
const PRIVATE_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT; also the metadata service of Alibaba Cloud
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local; the metadata service of most clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.31.196.0", 24], // AS112
  ["192.52.193.0", 24], // AMT
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["192.175.48.0", 24], // AS112
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["168.63.129.16", 32], // the host of Azure's virtual machines
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
];

/** IPv6 networks within those of {@linkcode PUBLIC_V6} that are not public. */
const PRIVATE_V6: readonly (readonly [string, number])[] = [
  ["2001::", 23], // protocol assignments: Teredo, benchmarks, ORCHID
  ["2001:db8::", 32], // documentation
  ["2620:4f:8000::", 48], // AS112
  ["3fff::", 20], // documentation
];

/** The IPv6 networks that may be public. */
const PUBLIC_V6: readonly (readonly [string, number])[] = [
  ["2000::", 3], // global unicast
  ["64:ff9b::", 96], // NAT64: an IPv4 address in the last 32 bits
  ["::ffff:0:0", 96], // mapped IPv4 addresses
];

const privateAddresses = new BlockList();
const publicV6 = new BlockList();
for (const [network, length] of PRIVATE_V4) {
  privateAddresses.addSubnet(network, length, "ipv4");
  // Packets to these go to the IPv4 address inside them: NAT64 and 6to4. Mapped addresses are known
  // to the list.
  privateAddresses.addSubnet(`64:ff9b::${network}`, 96 + length, "ipv6");
  const hex = network.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0")).join("");
  privateAddresses.addSubnet(`2002:${hex.slice(0, 4)}:${hex.slice(4)}::`, 16 + length, "ipv6");
}
for (const [network, length] of PRIVATE_V6) privateAddresses.addSubnet(network, length, "ipv6");
for (const [network, length] of PUBLIC_V6) publicV6.addSubnet(network, length, "ipv6");

/** Whether a text is an IP address of the public internet. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !privateAddresses.check(address);
  // Addresses with a zone ("fe80::1%eth0") are never public.
  return isIPv6(address) && !address.includes("%") && publicV6.check(address, "ipv6") &&
    !privateAddresses.check(address, "ipv6");
}
