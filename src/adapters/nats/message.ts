/**
 * Messages between callers and workers: JSON, cut into parts where it is large.
 *
 * A message has its signatures, a byte that is 1 if more parts follow, the number of the message in its
 * stream, and UTF-8.
 *
 * @module
 */

import type { Msg, NatsConnection } from "@nats-io/nats-core";
import type { HookLog } from "../../tool/mod.ts";
import { encodeJson, parseJson, type Seal } from "./seal.ts";

/** The bytes between the signatures of a message and its part: a flag, and the sequence number. */
const HEAD_BYTES = 5;
/** The maximum size of a part. Servers reject messages above `max_payload`, which is 1 MiB by default. */
const MAX_PART_BYTES = 524_288;
/** The bytes of a message that its headers and signatures may take. */
const ROOM_BYTES = 1_024;
/** The maximum size of all parts of a value. */
const MAX_TOTAL_BYTES = 67_108_864;
/** Larger values are sent one after another. A smaller value fits into one message of every server. */
const SMALL_BYTES = 61_440;
/** The maximum number of unconfirmed bytes of large values. */
const MAX_UNCONFIRMED_BYTES = 4_194_304;
/** The number of messages with wrong signatures that are logged one by one. */
const FORGED_LOGGED = 16;
const MAX_SEQUENCE = 2 ** 32 - 1;

/** A message with a valid signature. */
export interface OpenedPart {
  /** The position of the message in its stream: 0, 1, 2. */
  readonly sequence: number;
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
}

/** Checks and reads a message. Returns `undefined` if its signature is not valid for its subjects. */
export function openPart(seal: Seal, { data, subject, reply = "" }: Msg): OpenedPart | undefined {
  const start = seal.bytes + HEAD_BYTES;
  if (data.byteLength < start || !seal.accepts(data, subject, reply)) return undefined;
  const view = new DataView(data.buffer, data.byteOffset + seal.bytes, HEAD_BYTES);
  return {
    isLast: view.getUint8(0) === 0,
    sequence: view.getUint32(1),
    bytes: data.subarray(start),
  };
}

/**
 * Logs messages with wrong signatures: the first few, and then one at each power of two, so that an
 * attacker cannot flood the log.
 *
 * @param count The number of such messages so far.
 */
export function logForged(log: HookLog, what: string, count: number): void {
  const isFew = count <= FORGED_LOGGED;
  if (!isFew && (count & (count - 1)) !== 0) return;
  log(new Error(isFew ? what : `${what} (${count} of them so far)`));
}

/** Sends numbered values to one subject. */
export class Sender {
  readonly #connection: NatsConnection;
  readonly #seal: Seal;
  readonly #subject: string;
  readonly #reply: string;
  readonly #maxPart: number;
  #sequence = 0;
  #isAmid = false;

  /** @param reply The subject of answers, and of the server's message that there is no subscription. */
  constructor(connection: NatsConnection, seal: Seal, subject: string, reply = "") {
    this.#connection = connection;
    this.#seal = seal;
    this.#subject = subject;
    this.#reply = reply;
    const { max_payload: most = MAX_PART_BYTES + ROOM_BYTES } = connection.info ?? {};
    this.#maxPart = Math.min(MAX_PART_BYTES, most - ROOM_BYTES);
  }

  /** True between two parts of a value: no other value may be sent then. */
  get isAmid(): boolean {
    return this.#isAmid;
  }

  /**
   * Sends a value.
   *
   * @returns Its size in bytes.
   * @throws {Error} If the connection is closed, or the user may not publish to the subject.
   */
  send(value: unknown): number {
    const text = encodeJson(value);
    for (let at = 0; at < text.length;) at = this.sendPart(text, at);
    return text.length;
  }

  /** Sends the part of a value that starts at an offset. Returns the offset of the next part. */
  sendPart(text: Uint8Array, at: number): number {
    const part = text.subarray(at, at + this.#maxPart);
    const next = at + part.length;
    this.#isAmid = next < text.length;
    const head = this.#seal.bytes;
    const message = new Uint8Array(head + HEAD_BYTES + part.length);
    message[head] = this.#isAmid ? 1 : 0;
    new DataView(message.buffer).setUint32(head + 1, this.#sequence);
    this.#sequence = this.#sequence === MAX_SEQUENCE ? 0 : this.#sequence + 1;
    message.set(part, head + HEAD_BYTES);
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
 * Sends the values of many senders over one connection: small ones immediately, and large ones one after
 * another as fast as the server confirms them. So small values are not delayed by large ones, and the
 * client buffers little.
 */
export class Outbox {
  readonly #connection: NatsConnection;
  /** Resolves when the previous large values have been sent. */
  #turn: Promise<unknown> = Promise.resolve();
  #unconfirmed = 0;
  #waiting = 0;
  /** Ends the wait for the server. */
  #fail: (why: Error) => void = () => {};

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    // A flush of a closed connection never settles.
    void connection.closed().then(() => this.#fail(new Error("The connection is closed")));
  }

  /** The size of the large values that wait to be sent, in bytes. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Sends a value.
   *
   * @returns Its size in bytes, for a large value once it is sent.
   * @throws {Error} If the connection is closed or lost, or the user may not publish to the subject.
   */
  send(sender: Sender, value: unknown): number | Promise<number> {
    const text = encodeJson(value);
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

/** The result of {@linkcode Receiver.take} for a part if an earlier part is missing. */
export const GAP: unique symbol = Symbol("plue.nats.gap");
/** The result of {@linkcode Receiver.take} for a duplicate, such as a replayed message. */
export const SEEN: unique symbol = Symbol("plue.nats.seen");

/** Reassembles the values of one stream. */
export class Receiver {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #next = 0;

  /** The size of the last value, or of the received parts of an incomplete one, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @returns A value; `undefined` while it is incomplete; {@linkcode GAP}, or {@linkcode SEEN}. */
  take({ sequence, isLast, bytes }: OpenedPart): unknown {
    // Sequence numbers wrap, so the nearer direction decides.
    if (sequence !== this.#next) return (this.#next - sequence) >>> 0 < 2 ** 31 ? SEEN : GAP;
    this.#next = sequence === MAX_SEQUENCE ? 0 : sequence + 1;
    const isFirst = this.#parts.length === 0;
    this.#bytes = isFirst ? bytes.length : this.#bytes + bytes.length;
    if (this.#bytes > MAX_TOTAL_BYTES) return GAP;
    if (isLast && isFirst) return parseJson(bytes);
    this.#parts.push(bytes);
    if (!isLast) return undefined;
    const whole = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    this.#parts = [];
    return parseJson(whole);
  }
}
