/**
 * One HTTP request to an address that was checked. The host name is resolved once, all its
 * addresses are checked, and the connection goes to one of them: a second look-up could return
 * another address (DNS rebinding).
 */

import { lookup } from "node:dns/promises";
import { get as httpGet, type IncomingMessage } from "node:http";
import { get as httpsGet } from "node:https";
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from "node:net";
import { errorCode, Refusal } from "./refusal.ts";

/** An address of a name. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves a name to all its addresses. */
export type Resolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** The addresses that `network-fetch` may use. */
export interface NetworkAccess {
  /**
   * True if addresses outside the public internet are allowed, such as this machine and its network;
   * or the allowed addresses, such as `["10.0.0.7"]`.
   *
   * @default {false}
   */
  readonly allowPrivateNetwork?: boolean | readonly string[];
  /**
   * Resolves host names.
   *
   * @default {the operating system's resolver}
   */
  readonly resolve?: Resolver;
}

const systemResolver: Resolver = (hostname) => lookup(hostname, { all: true, verbatim: true });

/**
 * Sends a GET request and resolves with the head of the response. Redirects are not followed.
 *
 * @throws {Refusal} If an address is not allowed, or the request fails.
 */
export async function checkedGet(
  url: URL,
  access: NetworkAccess,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const isSecure = url.protocol === "https:";
  const options = {
    // No agent: it could reuse a connection that was checked for another call.
    agent: false,
    host: bareHost(url),
    port: Number(url.port) || (isSecure ? 443 : 80),
    path: `${url.pathname}${url.search}`,
    headers: { "user-agent": "plue network-fetch", accept: "*/*", "accept-encoding": "identity" },
    lookup: pinned(await allowedAddresses(url, access, signal)),
    signal,
  };
  return await new Promise((resolve, reject) => {
    // Not `once`: a response that is discarded may fail a second time.
    (isSecure ? httpsGet : httpGet)(options, resolve).on("error", (error) => {
      reject(signal.aborted ? signal.reason : networkRefusal(url, error));
    });
  });
}

async function allowedAddresses(
  url: URL,
  { allowPrivateNetwork = false, resolve = systemResolver }: NetworkAccess,
  signal: AbortSignal,
): Promise<readonly ResolvedAddress[]> {
  const host = bareHost(url);
  const family = isIP(host);
  // A name server may never answer.
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort);
  let addresses: readonly ResolvedAddress[];
  try {
    addresses = family !== 0
      ? [{ address: host, family }]
      : await Promise.race([resolve(host), aborted.promise]);
  } catch (error) {
    signal.throwIfAborted();
    throw networkRefusal(url, error);
  } finally {
    signal.removeEventListener("abort", abort);
  }
  // One private address is enough to reject the name: it may be a rebinding attack.
  const isAllowed = ({ address }: ResolvedAddress): boolean =>
    isPublicAddress(address) ||
    (typeof allowPrivateNetwork === "boolean"
      ? allowPrivateNetwork
      : allowPrivateNetwork.includes(address));
  if (addresses.length > 0 && addresses.every(isAllowed)) return addresses;
  throw new Refusal(
    "denied",
    `Cannot fetch from "${url.host}": it is not an address of the public internet`,
    { pointer: "/url" },
  );
}

/** Returns the host without the brackets of an IPv6 address. */
function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

/** Returns a look-up with only the addresses that were checked. */
function pinned(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, options, callback) => {
    const usable = addresses.filter(({ family }) => !options.family || family === options.family);
    const [first] = usable;
    if (first === undefined) {
      callback(Object.assign(new Error("no usable address"), { code: "ENOTFOUND" }), "", 0);
    } else if (options.all === true) callback(null, usable.map((one) => ({ ...one })));
    else callback(null, first.address, first.family);
  };
}

/** Returns a refusal with the code of the network's error. */
export function networkRefusal(url: URL, error: unknown): Refusal {
  const why = `the network reported ${errorCode(error) ?? "an error"}`;
  return new Refusal("unavailable", `Cannot fetch from "${url.host}": ${why}`, {
    pointer: "/url",
    cause: error,
  });
}

/**
 * IPv4 networks that are not public: the IANA registry of special-purpose addresses
 * (100.64.0.0/10 also contains a cloud's metadata service), multicast, reserved addresses, and the
 * host of Azure's virtual machines.
 */
const PRIVATE_V4 = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 " +
  "192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 " +
  "192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 168.63.129.16/32 224.0.0.0/4 " +
  "240.0.0.0/4";
/** The IPv6 networks that may be public: global unicast, NAT64 and mapped IPv4 addresses. */
const PUBLIC_V6 = "2000::/3 64:ff9b::/96 ::ffff:0:0/96";
/** Networks in {@linkcode PUBLIC_V6} that are not public: protocols, documentation and AS112. */
const PRIVATE_V6 = "2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20";

const privateAddresses = new BlockList();
const publicV6 = new BlockList();
const parseNetworks = (text: string) =>
  text.split(" ").map((network) => network.split("/"))
    .map(([address = "", length]) => [address, Number(length)] as const);
for (const [network, length] of parseNetworks(PRIVATE_V4)) {
  privateAddresses.addSubnet(network, length, "ipv4");
  // NAT64 and 6to4 addresses contain an IPv4 address. BlockList handles mapped addresses.
  privateAddresses.addSubnet(`64:ff9b::${network}`, 96 + length, "ipv6");
  const hex = network.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0")).join("");
  privateAddresses.addSubnet(`2002:${hex.slice(0, 4)}:${hex.slice(4)}::`, 16 + length, "ipv6");
}
for (const one of parseNetworks(PRIVATE_V6)) privateAddresses.addSubnet(...one, "ipv6");
for (const one of parseNetworks(PUBLIC_V6)) publicV6.addSubnet(...one, "ipv6");

/** Returns true if a text is an IP address of the public internet. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !privateAddresses.check(address);
  // Addresses with a zone ("fe80::1%eth0") are never public.
  return isIPv6(address) && !address.includes("%") && publicV6.check(address, "ipv6") &&
    !privateAddresses.check(address, "ipv6");
}
