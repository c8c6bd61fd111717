/** Tickets that contain the encrypted call: JSON Web Encryption (`dir`, `A256GCM`) by `jose`. */

import {
  base64url,
  createTickets,
  type TicketOptions,
  type TicketSealer,
} from "../../execute/durable/mod.ts";
import type { CallTickets } from "../../execute/mod.ts";
import { attemptOr, fail } from "../../tool/mod.ts";

/** Options for {@linkcode sealedTickets}. */
export interface SealedTicketsOptions extends TicketOptions {
  /**
   * Secrets of 32 bytes each, as bytes or in Base64 (`openssl rand -base64 32`). The first secret
   * encrypts; all secrets decrypt. To change the secret, put a new one at the front, and remove the
   * old one when its tickets have expired.
   */
  readonly keys: readonly (string | Uint8Array)[];
}

const ACTION = "seal tickets";
const HEADER = { alg: "dir", enc: "A256GCM" };
const OPENS = {
  keyManagementAlgorithms: [HEADER.alg],
  contentEncryptionAlgorithms: [HEADER.enc],
};

/**
 * Creates tickets that need no store: each ticket contains its call, and only a holder of one of
 * the keys can read or create a ticket. Needs the package `jose`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { isSuspended, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { sealedTickets } from "@plue/tools/calls";
 *
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "greet",
 *     description: "Greets.",
 *     async execute(_, context) {
 *       const answer = await context.ask<string>("name", { message: "Who are you?", schema: { type: "string" } });
 *       return answer.action === "accept" ? `Hello ${answer.content}` : "Hello";
 *     },
 *   }],
 * });
 * const key = crypto.getRandomValues(new Uint8Array(32));
 * const dispatcher = () => new ToolDispatcher(registry, { tickets: sealedTickets({ keys: [key] }) });
 *
 * const waiting = await dispatcher().dispatch({ name: "greet" });
 * assert.ok(isSuspended(waiting));
 * const answers = { name: { action: "accept", content: "Ann" } } as const;
 * const result = await dispatcher().resume(waiting.ticket, answers);
 * assert.equal(result.ok && result.content, "Hello Ann");
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function sealedTickets({ keys, ...options }: SealedTicketsOptions): CallTickets {
  if (!Array.isArray(keys) || keys.length === 0) fail(ACTION, "keys must be a list of secrets");
  return createTickets(sealer(keys.map(secretOf)), options);
}

/** Returns the bytes of a secret. No error message contains the secret. */
function secretOf(key: unknown, index: number): Uint8Array<ArrayBuffer> {
  const bytes = typeof key === "string" ? fromBase64(key) : key;
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== 32) {
    fail(ACTION, `keys[${index}] must be 32 bytes, or their Base64: openssl rand -base64 32`);
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

/** The functions and keys that encrypt and decrypt tickets. Loaded for the first ticket. */
interface Tools {
  readonly jose: Jose;
  /** Keys by the names in the tickets' headers. The first one encrypts. */
  readonly keys: ReadonlyMap<string, CryptoKey>;
}

function sealer(secrets: readonly Uint8Array<ArrayBuffer>[]): TicketSealer {
  let made: Promise<Tools> | undefined;
  const tools = (): Promise<Tools> => made ??= makeTools(secrets);
  return {
    async seal(content) {
      const { jose, keys } = await tools();
      const [[kid, key]] = keys as unknown as [[string, CryptoKey]];
      return await new jose.CompactEncrypt(content)
        .setProtectedHeader({ ...HEADER, kid })
        .encrypt(key);
    },
    async open(ticket) {
      const { jose, keys } = await tools();
      let kid: string | undefined;
      try {
        ({ kid } = jose.decodeProtectedHeader(ticket));
      } catch {
        return "damaged";
      }
      const key = keys.get(kid ?? "");
      if (key === undefined) return "unknown_key";
      try {
        return (await jose.compactDecrypt(ticket, key, OPENS)).plaintext;
      } catch {
        return "damaged";
      }
    },
  };
}

async function makeTools(secrets: readonly Uint8Array<ArrayBuffer>[]): Promise<Tools> {
  const { subtle } = crypto;
  const keys = await Promise.all(secrets.map(async (secret) => {
    const digest = new Uint8Array(await subtle.digest("SHA-256", secret));
    const kid = base64url(digest.slice(0, 6));
    const key = await subtle.importKey("raw", secret, "AES-GCM", false, ["encrypt", "decrypt"]);
    return [kid, key] as const;
  }));
  return { jose: await loadJose(), keys: new Map(keys) };
}

async function loadJose(): Promise<Jose> {
  try {
    // Imports single modules, because a bundle would contain the whole package otherwise.
    const [{ CompactEncrypt }, { compactDecrypt }, { decodeProtectedHeader }] = await Promise.all([
      import("jose/jwe/compact/encrypt"),
      import("jose/jwe/compact/decrypt"),
      import("jose/decode/protected_header"),
    ]);
    return { CompactEncrypt, compactDecrypt, decodeProtectedHeader };
  } catch (cause) {
    throw new Error(`Cannot ${ACTION}: the package "jose" is not installed`, { cause });
  }
}
