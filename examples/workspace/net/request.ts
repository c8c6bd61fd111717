/**
 * One HTTP request, to an address that was checked. The name is resolved here, every address it
 * has is checked, and the connection goes to one of those very addresses: a name server that
 * answers differently the second time (DNS rebinding) is not asked a second time.
 *
 * @module
 */

import { lookup as systemLookup } from "node:dns";
import { type IncomingMessage, request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { errorCode, Refusal } from "../refusal.ts";
import { isPublicAddress } from "./addresses.ts";

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
 * Sends the request; answers when the head of the response is there. Redirects are not followed.
 *
 * @throws {Refusal} If an address is not allowed, or nothing answers.
 */
export async function sendChecked(options: CheckedRequest): Promise<IncomingMessage> {
  const { url, method, headers, body, signal } = options;
  signal.throwIfAborted();
  const addresses = await allowedAddresses(options);
  signal.throwIfAborted();
  const requestOptions: RequestOptions = {
    method,
    // No agent: a connection that another call opened was checked for that call.
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
    // Not once: a response that is thrown away may fail a second time.
    request.on("error", (error) => {
      reject(signal.aborted ? signal.reason : networkRefusal(url, error));
    });
    request.end(body);
  });
}

async function allowedAddresses(
  { url, allowPrivate, resolve = systemResolver }: CheckedRequest,
): Promise<readonly ResolvedAddress[]> {
  const isAllowed = (address: string) =>
    typeof allowPrivate === "boolean" ? allowPrivate : allowPrivate.includes(address);
  const host = bareHost(url);
  const family = isIP(host);
  let addresses: readonly ResolvedAddress[];
  try {
    addresses = family !== 0 ? [{ address: host, family }] : await resolve(host);
  } catch (error) {
    throw networkRefusal(url, error);
  }
  // One private address among public ones is how a rebinding name looks: refuse the name.
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

/** What the network says, in words. */
export function networkRefusal(url: URL, error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const code = errorCode(error);
  const why = NETWORK_ERRORS.get(code ?? "") ?? `the network answered ${code ?? "an error"}`;
  return new Refusal("unavailable", `Cannot fetch from "${url.host}": ${why}`, {
    pointer: "/url",
    cause: error,
  });
}
