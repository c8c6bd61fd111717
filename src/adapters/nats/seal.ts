/**
 * Signatures of everything that callers and workers send or store. An HMAC with their shared secret
 * proves that a message comes from a caller or a worker. With keys, an Ed25519 signature also
 * proves which of the two has sent it.
 *
 * A message begins with 32 bytes of HMAC-SHA-256 and, with keys, 64 bytes of signature. Both cover the
 * subject and the reply subject, so that the message is invalid on any other subject.
 */

import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type Hash,
  type Hmac,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
} from "node:crypto";
import { Buffer } from "node:buffer";
import { nkeys } from "@nats-io/nats-core";
import { encodeJson, parseJson } from "../../execute/durable/mod.ts";
import { attemptOr, describeThrown, fail, isListOf, isObject, isWord } from "../../tool/mod.ts";

export type Role = "caller" | "worker";

/** Ed25519 keys of callers and workers, in the form of NATS (nkeys). `plue nats keys` prints a new one. */
export interface NatsKeys {
  /** The seed of this process, which stays secret: `SU…`. */
  readonly seed: string;
  /** The public keys of all callers: `U…`. */
  readonly callers: readonly string[];
  /** The public keys of all workers: `U…`. */
  readonly workers: readonly string[];
}

const MAC_BYTES = 32;
const SIGNATURE_BYTES = 64;
const MIN_SECRET = 16;
/** The maximum number of public keys of a role. A check may have to try each key. */
const MAX_KEYS = 64;
/** The DER prefix of the 32 bytes of an Ed25519 key. */
const PRIVATE_DER = "302e020100300506032b657004220420";
const PUBLIC_DER = "302a300506032b6570032100";

const encoder = new TextEncoder();

/** Signs messages as one role, and checks the messages of other roles. */
export class Seal {
  readonly bytes: number;
  readonly role: Role;
  readonly #secrets: readonly KeyObject[];
  readonly #keys: Readonly<Record<Role, readonly KeyObject[]>> | undefined;
  readonly #seed: KeyObject | undefined;

  /** @throws {TypeError} If a secret or a key is not valid. */
  constructor(
    action: string,
    secret: string | readonly string[],
    role: Role = "caller",
    keys?: Omit<NatsKeys, "seed"> & { readonly seed?: string | undefined },
  ) {
    this.#secrets = readSecrets(action, secret);
    this.role = role;
    this.bytes = MAC_BYTES + (keys === undefined ? 0 : SIGNATURE_BYTES);
    if (keys === undefined) return;
    if (!isObject(keys)) fail(action, "keys must be an object with seed, callers and workers");
    const { seed, callers, workers } = keys;
    this.#keys = {
      caller: readPublicKeys(action, "callers", callers),
      worker: readPublicKeys(action, "workers", workers),
    };
    if (seed === undefined) return;
    const own = publicKeyOf(action, seed);
    const list = `${role}s` as const;
    if (!keys[list].includes(own)) {
      fail(action, `keys.${list} must have the public key of keys.seed, which is "${own}"`);
    }
    this.#seed = createPrivateKey({
      ...{ key: derOf(PRIVATE_DER, decodeBase32(seed).subarray(2, 34)) },
      ...{ format: "der", type: "pkcs8" },
    });
  }

  /** Signs a message for its subjects, and writes the signature to the first {@linkcode bytes}. */
  sign(message: Uint8Array, subject: string, reply: string): void {
    if (this.#seed !== undefined) {
      const digest = this.#digestOf(message, subject, reply);
      message.set(sign(null, digest, this.#seed), MAC_BYTES);
    }
    message.set(macOf(this.#secrets[0] as KeyObject, message, subject, reply));
  }

  /** Returns true if a message was signed for these subjects, by default by the other role. */
  accepts(
    message: Uint8Array,
    subject: string,
    reply: string,
    from: Role = this.role === "caller" ? "worker" : "caller",
  ): boolean {
    if (message.byteLength < this.bytes) return false;
    const mac = message.subarray(0, MAC_BYTES);
    const isOfGroup = this.#secrets.some((secret) =>
      timingSafeEqual(mac, macOf(secret, message, subject, reply))
    );
    if (!isOfGroup || this.#keys === undefined) return isOfGroup;
    const digest = this.#digestOf(message, subject, reply);
    const signature = message.subarray(MAC_BYTES, this.bytes);
    return this.#keys[from].some((key) => verify(null, digest, key, signature));
  }

  wrap(value: unknown, key: string): Uint8Array {
    const text = encodeJson(value);
    const message = new Uint8Array(this.bytes + text.length);
    message.set(text, this.bytes);
    this.sign(message, key, "");
    return message;
  }

  /** Returns the value that was stored under a key; `undefined` if it is not signed, or not JSON. */
  unwrap(message: Uint8Array, key: string, from?: Role): unknown {
    if (!this.accepts(message, key, "", from)) return undefined;
    return attemptOr(undefined, () => parseJson(message.subarray(this.bytes)));
  }

  /** Returns the digest that a role signs: to sign the message, Ed25519 would need a copy of it. */
  #digestOf(message: Uint8Array, subject: string, reply: string): Uint8Array {
    return digest(createHash("sha256"), message.subarray(this.bytes), subject, reply);
  }
}

export function roleOf(action: string, keys: NatsKeys | undefined): Role {
  if (!isObject(keys) || !isListOf(keys["workers"], isWord)) return "caller";
  return keys["workers"].includes(publicKeyOf(action, keys["seed"])) ? "worker" : "caller";
}

function publicKeyOf(action: string, seed: unknown): string {
  try {
    return nkeys.fromSeed(encoder.encode(seed as string)).getPublicKey();
  } catch {
    fail(action, 'keys.seed must be the seed of a key: "SU" and 56 letters or digits');
  }
}

function macOf(secret: KeyObject, message: Uint8Array, subject: string, reply: string): Uint8Array {
  return digest(createHmac("sha256", secret), message.subarray(MAC_BYTES), subject, reply);
}

function digest(hash: Hash | Hmac, bytes: Uint8Array, subject: string, reply: string): Uint8Array {
  // The parts are unambiguous, because a subject cannot contain a line feed.
  return hash.update(`${subject}\n${reply}\n`).update(bytes).digest();
}

function readSecrets(action: string, secret: string | readonly string[]): readonly KeyObject[] {
  const secrets: unknown = typeof secret === "string" ? [secret] : secret;
  const isSecret = (one: unknown): one is string =>
    typeof one === "string" && one.length >= MIN_SECRET && !/\s/.test(one);
  if (!isListOf(secrets, isSecret) || secrets.length === 0) {
    // Without spaces, because they separate the secrets in PLUE_NATS_SECRET.
    const wanted =
      `a string of at least ${MIN_SECRET} characters without spaces, or a list of them`;
    fail(action, `secret must be ${wanted}`);
  }
  return secrets.map((one) => createSecretKey(encoder.encode(one)));
}

function readPublicKeys(action: string, field: string, keys: unknown): readonly KeyObject[] {
  if (!isListOf(keys, isWord) || keys.length === 0 || keys.length > MAX_KEYS) {
    fail(action, `keys.${field} must be a list of 1 to ${MAX_KEYS} public keys`);
  }
  return (keys as readonly string[]).map((key, at) => {
    try {
      nkeys.fromPublic(key);
      const bytes = decodeBase32(key).subarray(1, 33);
      return createPublicKey({ key: derOf(PUBLIC_DER, bytes), format: "der", type: "spki" });
    } catch (cause) {
      // The message does not contain the text, because it may be a seed.
      fail(action, `keys.${field}[${at}] is not a public key (${describeThrown(cause, 100)})`);
    }
  });
}

function derOf(prefix: string, key: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(prefix, "hex"), key]);
}

function decodeBase32(text: string): Uint8Array {
  const bytes: number[] = [];
  let [bits, value] = [0, 0];
  for (const letter of text) {
    value = (value << 5 | "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter)) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push(value >> bits & 0xff);
  }
  return Uint8Array.from(bytes);
}
