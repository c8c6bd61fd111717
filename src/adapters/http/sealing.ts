/** Encrypts data with replaceable secrets: JSON Web Encryption (`dir`, `A256GCM`) by `jose`. */

import { base64url } from "../../execute/durable/mod.ts";
import { attemptOr, fail } from "../../tool/mod.ts";

const HEADER = { alg: "dir", enc: "A256GCM" };
const OPENS = { keyManagementAlgorithms: [HEADER.alg], contentEncryptionAlgorithms: [HEADER.enc] };

/** Encrypts data as text, and decrypts it. */
export interface Sealer {
  seal(content: Uint8Array): Promise<string>;
  /** Rejects if the package `jose` is missing. */
  load(): Promise<unknown>;
  open(text: string): Promise<Uint8Array | "damaged" | "unknown_key">;
}

/** Makes a sealer of 32-byte secrets. The first one encrypts; all decrypt. */
export function createSealer(action: string, keys: readonly (string | Uint8Array)[]): Sealer {
  if (!Array.isArray(keys) || keys.length === 0) fail(action, "keys must be a list of secrets");
  const secrets = keys.map((key, index) => secretOf(action, key, index));
  let made: Promise<Tools> | undefined;
  const tools = (): Promise<Tools> => made ??= makeTools(action, secrets);
  return {
    load: tools,
    async seal(content) {
      const { jose, keys } = await tools();
      const [[kid, key]] = keys as unknown as [[string, CryptoKey]];
      return await new jose.CompactEncrypt(content)
        .setProtectedHeader({ ...HEADER, kid })
        .encrypt(key);
    },
    async open(text) {
      const { jose, keys } = await tools();
      try {
        const key = keys.get(jose.decodeProtectedHeader(text).kid ?? "");
        if (key === undefined) return "unknown_key";
        return (await jose.compactDecrypt(text, key, OPENS)).plaintext;
      } catch {
        return "damaged";
      }
    },
  };
}

function secretOf(action: string, key: unknown, index: number): Uint8Array<ArrayBuffer> {
  const bytes = typeof key === "string" ? fromBase64(key) : key;
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== 32) {
    fail(action, `keys[${index}] must be 32 bytes, or their Base64: openssl rand -base64 32`);
  }
  return new Uint8Array(bytes);
}

function fromBase64(text: string): Uint8Array | undefined {
  return attemptOr(undefined, () => {
    const binary = atob(text.trim().replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  });
}

type Jose = Pick<
  typeof import("jose"),
  "CompactEncrypt" | "compactDecrypt" | "decodeProtectedHeader"
>;

/** The functions and keys that encrypt and decrypt. Loaded on first use. */
interface Tools {
  readonly jose: Jose;
  /** Keys by the names in the headers. The first one encrypts. */
  readonly keys: ReadonlyMap<string, CryptoKey>;
}

async function makeTools(
  action: string,
  secrets: readonly Uint8Array<ArrayBuffer>[],
): Promise<Tools> {
  const { subtle } = crypto;
  const keys = await Promise.all(secrets.map(async (secret) => {
    const digest = new Uint8Array(await subtle.digest("SHA-256", secret));
    const kid = base64url(digest.slice(0, 6));
    const key = await subtle.importKey("raw", secret, "AES-GCM", false, ["encrypt", "decrypt"]);
    return [kid, key] as const;
  }));
  return { jose: await loadJose(action), keys: new Map(keys) };
}

async function loadJose(action: string): Promise<Jose> {
  try {
    // Imports single modules, because a bundle would contain the whole package otherwise.
    const [encrypt, decrypt, header] = await Promise.all([
      import("jose/jwe/compact/encrypt"),
      import("jose/jwe/compact/decrypt"),
      import("jose/decode/protected_header"),
    ]);
    return { ...encrypt, ...decrypt, ...header };
  } catch (cause) {
    throw new Error(`Cannot ${action}: run "npm install jose" first`, { cause });
  }
}
