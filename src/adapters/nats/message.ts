/**
 * What travels between callers and workers: JSON in signed messages, cut into parts where it is large.
 *
 * A message is 32 bytes of HMAC-SHA-256, a byte that says whether more parts follow, the number of
 * the message in its stream, and UTF-8. The signature covers the subject and the reply subject too, so
 * that a message cannot be sent again to another place.
 *
 * @module
 */

import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { describe, type HookLog, isListOf, refuse } from "../../tool/mod.ts";

/** How long a signature is. */
export const MAC_BYTES = 32;
const HEAD_BYTES = MAC_BYTES + 5;
/** Servers refuse messages above `max_payload`, which is 1 MiB unless they are told otherwise. */
const MAX_PART_BYTES = 524_288;
/** What a message may have besides its part. */
const ROOM_BYTES = 1_024;
/** How large the parts of one message may be together. */
const MAX_TOTAL_BYTES = 67_108_864;
/** Larger values are sent one after another. Every message that the server takes has room for one. */
const SMALL_BYTES = 61_440;
/** How many bytes of large values are sent before the server has confirmed them. */
const MAX_UNCONFIRMED_BYTES = 4_194_304;
const MIN_SECRET = 16;
/** How many messages with wrong signatures are logged one by one. */
const FORGED_LOGGED = 16;
const MAX_SEQUENCE = 2 ** 32 - 1;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** One message, once its signature was found to be right. */
export interface OpenedPart {
  /** The number of the message in its stream: 0, 1, 2. */
  readonly sequence: number;
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
}

/** Signs messages with the first of its keys, and accepts those of all. */
export class Seal {
  readonly #keys: readonly KeyObject[];

  /** @throws {TypeError} If a secret is none. */
  constructor(action: string, secret: string | readonly string[]) {
    const secrets: unknown = typeof secret === "string" ? [secret] : secret;
    const isSecret = (one: unknown): one is string =>
      typeof one === "string" && one.length >= MIN_SECRET && !/\s/.test(one);
    if (!isListOf(secrets, isSecret) || secrets.length === 0) {
      refuse(
        action,
        `secret must be a string of at least ${MIN_SECRET} characters without spaces, or a list of ` +
          `them, not ${typeof secret !== "string" ? describe(secret) : problemOf(secret)}`,
      );
    }
    this.#keys = secrets.map((one) => createSecretKey(encoder.encode(one)));
  }

  /** Signs bytes for a place. The first {@linkcode MAC_BYTES} of `message` are written. */
  sign(message: Uint8Array, subject: string, reply: string): void {
    message.set(macOf(this.#keys[0] as KeyObject, message, subject, reply));
  }

  /** Whether one of the keys has signed the message for this place. */
  accepts(message: Uint8Array, subject: string, reply: string): boolean {
    if (message.byteLength < MAC_BYTES) return false;
    const given = message.subarray(0, MAC_BYTES);
    return this.#keys.some((key) => timingSafeEqual(given, macOf(key, message, subject, reply)));
  }

  /** Signs a value to be kept under a key. */
  wrap(value: unknown, key: string): Uint8Array {
    const text = encode(value);
    const message = new Uint8Array(MAC_BYTES + text.length);
    message.set(text, MAC_BYTES);
    this.sign(message, key, "");
    return message;
  }

  /** The value that was kept under a key; `undefined` if none of the keys has signed it, or it is no JSON. */
  unwrap(message: Uint8Array, key: string): unknown {
    if (!this.accepts(message, key, "")) return undefined;
    try {
      return parse(message.subarray(MAC_BYTES));
    } catch {
      return undefined;
    }
  }

  /** Checks and reads a message. `undefined` if it is not signed, or not for this place. */
  open({ data, subject, reply = "" }: Msg): OpenedPart | undefined {
    if (data.byteLength < HEAD_BYTES || !this.accepts(data, subject, reply)) return undefined;
    const view = new DataView(data.buffer, data.byteOffset + MAC_BYTES, 5);
    return {
      isLast: view.getUint8(0) === 0,
      sequence: view.getUint32(1),
      bytes: data.subarray(HEAD_BYTES),
    };
  }
}

/** PLUE_NATS_SECRET has spaces between several secrets. */
function problemOf(secret: string): string {
  return secret.length < MIN_SECRET ? "a shorter one" : "one with spaces";
}

/**
 * Logs messages with wrong signatures: a few, and then one at each power of two, since others can send
 * as many as they want.
 *
 * @param count How many there were.
 */
export function logForged(log: HookLog, what: string, count: number): void {
  const isFew = count <= FORGED_LOGGED;
  if (!isFew && (count & (count - 1)) !== 0) return;
  log(new Error(isFew ? what : `${what} (${count} of them so far)`));
}

function macOf(key: KeyObject, message: Uint8Array, subject: string, reply: string): Uint8Array {
  // Neither subject can have a line feed.
  return createHmac("sha256", key)
    .update(`${subject}\n${reply}\n`)
    .update(message.subarray(MAC_BYTES))
    .digest();
}

/** Sends values to one subject, numbered. */
export class Sender {
  readonly #connection: NatsConnection;
  readonly #seal: Seal;
  readonly #subject: string;
  readonly #reply: string;
  readonly #maxPart: number;
  #sequence = 0;
  #isAmid = false;

  /** @param reply Where answers go, and where the server says that nobody listens. */
  constructor(connection: NatsConnection, seal: Seal, subject: string, reply = "") {
    this.#connection = connection;
    this.#seal = seal;
    this.#subject = subject;
    this.#reply = reply;
    const { max_payload: most = MAX_PART_BYTES + ROOM_BYTES } = connection.info ?? {};
    this.#maxPart = Math.min(MAX_PART_BYTES, most - ROOM_BYTES);
  }

  /** Whether a part of a value was sent, and more of it is to come: no other value may go between. */
  get isAmid(): boolean {
    return this.#isAmid;
  }

  /**
   * Sends a value.
   *
   * @returns How many bytes it has.
   * @throws If the connection is closed, or the user may not publish there.
   */
  send(value: unknown): number {
    const text = encode(value);
    for (let at = 0; at < text.length;) at = this.sendPart(text, at);
    return text.length;
  }

  /** Sends the part of a value that begins at a byte. Gives the byte at which the next one begins. */
  sendPart(text: Uint8Array, at: number): number {
    const part = text.subarray(at, at + this.#maxPart);
    const next = at + part.length;
    this.#isAmid = next < text.length;
    const message = new Uint8Array(HEAD_BYTES + part.length);
    message[MAC_BYTES] = this.#isAmid ? 1 : 0;
    new DataView(message.buffer).setUint32(MAC_BYTES + 1, this.#sequence);
    this.#sequence = this.#sequence === MAX_SEQUENCE ? 0 : this.#sequence + 1;
    message.set(part, HEAD_BYTES);
    this.#seal.sign(message, this.#subject, this.#reply);
    this.#connection.publish(
      this.#subject,
      message,
      this.#reply === "" ? undefined : { reply: this.#reply },
    );
    return next;
  }
}

/**
 * Sends the values of many senders over one connection: small ones at once, and large ones one after
 * another as fast as the server takes them, so that small ones get between and little waits in the client.
 */
export class Outbox {
  readonly #connection: NatsConnection;
  /** Resolves when the large values before have been sent. */
  #turn: Promise<unknown> = Promise.resolve();
  #unconfirmed = 0;
  #waiting = 0;
  /** Ends the wait for the server. */
  #fail: (why: Error) => void = () => {};

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    // A connection that is closed confirms nothing, and does not say so.
    void connection.closed().then(() => this.#fail(new Error("The connection is closed")));
  }

  /** How many bytes of large values wait until they are sent. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Sends a value.
   *
   * @returns How many bytes it has, once they are sent.
   * @throws If the connection is closed or lost, or the user may not publish there.
   */
  send(sender: Sender, value: unknown): number | Promise<number> {
    const text = encode(value);
    if (text.length <= SMALL_BYTES) return sender.sendPart(text, 0);
    this.#waiting += text.length;
    const sent = this.#turn.then(() => this.#sendParts(sender, text)).finally(() => {
      this.#waiting -= text.length;
    });
    this.#turn = sent.catch(() => {});
    return sent;
  }

  async #sendParts(sender: Sender, text: Uint8Array): Promise<number> {
    for (let at = 0; at < text.length;) {
      const next = sender.sendPart(text, at);
      this.#unconfirmed += next - at;
      at = next;
      if (this.#unconfirmed < MAX_UNCONFIRMED_BYTES) continue;
      this.#unconfirmed = 0;
      await new Promise<void>((resolve, reject) => {
        this.#fail = reject;
        this.#connection.flush().then(resolve, reject);
      });
    }
    return text.length;
  }
}

/** What {@linkcode Receiver.take} says of a part in whose place another was expected. */
export const GAP: unique symbol = Symbol("plue.nats.gap");
/** The result of {@linkcode Receiver.take} for a part that came before: a message sent again by others. */
export const SEEN: unique symbol = Symbol("plue.nats.seen");

/** Puts the values of one stream together again. */
export class Receiver {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #next = 0;

  /** How many bytes the last value had, or have come of the one that is under way. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @returns A value; `undefined` while more of it is to come; {@linkcode GAP}, or {@linkcode SEEN}. */
  take({ sequence, isLast, bytes }: OpenedPart): unknown {
    // Sequence numbers wrap, so the nearer direction decides.
    if (sequence !== this.#next) return (this.#next - sequence) >>> 0 < 2 ** 31 ? SEEN : GAP;
    this.#next = sequence === MAX_SEQUENCE ? 0 : sequence + 1;
    const isFirst = this.#parts.length === 0;
    this.#bytes = isFirst ? bytes.length : this.#bytes + bytes.length;
    if (this.#bytes > MAX_TOTAL_BYTES) return GAP;
    if (isLast && isFirst) return parse(bytes);
    this.#parts.push(bytes);
    if (!isLast) return undefined;
    const whole = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    this.#parts = [];
    return parse(whole);
  }
}

function encode(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** Parses what was signed, which is JSON. */
function parse(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes));
}
