/** An issuer of tokens, for the tests. */

import { sign } from "hono/jwt";
import type { NamedKey } from "@plue/tools/hono";

export const ISSUER = "https://issuer.example";
export const AUDIENCE = "https://tools.example.com";
/** The time of the tests' clock: noon on the first of January, 2026, in milliseconds. */
export const NOW: number = Date.UTC(2026, 0, 1, 12);
export const SECONDS: number = NOW / 1000;

export interface Issuer {
  readonly keys: readonly NamedKey[];
  token(claims?: Record<string, unknown>): Promise<string>;
}

/** An issuer with one key pair. */
export async function createIssuer(kid: string = "k1"): Promise<Issuer> {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]) as CryptoKeyPair;
  const own = await crypto.subtle.exportKey("jwk", pair.privateKey) as JsonWebKey;
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey) as JsonWebKey;
  const base = { iss: ISSUER, aud: AUDIENCE, sub: "ann", exp: SECONDS + 60 };
  return {
    keys: [{ kty: "EC", kid, alg: "ES256", crv, x, y } as NamedKey].map((key) => ({
      ...key,
      ...(kty === undefined ? {} : { kty }),
    })),
    token: (claims = {}) => sign({ ...base, ...claims }, { ...own, kid, alg: "ES256" }),
  };
}

/** A token made by hand. */
export function forge(header: unknown, claims: unknown, signature: string = ""): string {
  const part = (value: unknown): string =>
    btoa(JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${part(header)}.${part(claims)}.${signature}`;
}

export const bearer = (token: string): { authorization: string } => ({
  authorization: `Bearer ${token}`,
});
