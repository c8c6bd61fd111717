/**
 * The protocol between callers and workers: names of subjects, messages, and their parts.
 * `docs/scale.md` explains the order of the messages.
 *
 * A message has its signatures, a byte that is 1 if more parts follow, the number of the message in its
 * stream, and JSON in UTF-8.
 */

import { createHash } from "node:crypto";
import {
  type Answers,
  canonicalJson,
  type Check,
  describeTool,
  isStandardSchema,
  matching,
  Mutex,
  parseToolId,
  type Tool,
  type ToolResult,
} from "../../tool/mod.ts";
import * as calls from "../../execute/mod.ts";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { encodeJson, parseJson } from "../../execute/durable/mod.ts";
import type { Seal } from "./seal.ts";

/** The version of the protocol. Versions have different subjects, so that several can run together. */
const ROOT = "plue.v1";

export const DIRECTORY = "plue_tools";
/** The default bucket of {@linkcode natsCallStore}. */
export const CALLS_BUCKET = "plue_calls";
/** The stream of durable calls, and the bucket with their results. */
export const RUNS_STREAM = "PLUE_CALLS";
export const RESULTS_BUCKET = "plue_results";

export const callSubject = (worker: string, path: string): string =>
  `${ROOT}.call.${worker}.${path}`;
export const controlSubject = (worker: string, call: string): string =>
  `${ROOT}.ctl.${worker}.${call}`;
/** Returns the id of a call: the last word of its reply subject and of the subjects of its answers. */
export const callIdOf = (inbox: string): string => inbox.slice(inbox.lastIndexOf(".") + 1);

/**
 * Returns true if a caller may choose the subject for its answers. Workers may also publish to
 * buckets, to the server's API and to subjects of this protocol, so a caller must not choose these.
 */
export function isInbox(subject: unknown): subject is string {
  return typeof subject === "string" && /^(?!\$|plue\.)[^\s*>]+$/.test(subject);
}

export const presenceSubject = (registry: string, worker: string): string =>
  `${ROOT}.here.${registry}.${worker}`;
export const runSubject = (path: string): string => `${ROOT}.run.${path}`;
/**
 * The subject of a principal's durable calls of up to 2^size KiB. So the number of messages per
 * subject shows the size of the principal's calls.
 */
export const ownedRunSubject = (path: string, owner: string, size: number | "*"): string =>
  `${runSubject(path)}.${owner}.${size}`;

export const checkRegistryName: Check<string> = matching(
  '1 to 64 letters, digits, "_" or "-"',
  /^[\w-]{1,64}$/,
);

/** Encodes a word of a subject or key without dots, which separate the words. */
function word(text: string | undefined): string {
  return text === undefined ? "/" : text.replaceAll(".", "=");
}

/** The key of a worker's list in the directory. A dot and the number of a part follow. */
export const workerKey = (registry: string, worker: string): string =>
  `${registry}.worker.${worker}`;
export const toolKey = (path: string): string => path.replace(".", ".tool.");

/** Returns the path of a definition: `registry.namespace.name.digest`. */
export function pathOf(registry: string, id: string, digest: string): string {
  const { namespace, name } = parseToolId(id);
  return `${registry}.${word(namespace)}.${word(name)}.${digest}`;
}

export function idOfPath(path: string): string {
  const [, namespace, name] = path.split(".").map((part) => part.replaceAll("=", "."));
  return namespace === "/" ? `${name}` : `${namespace}:${name}`;
}

/** Returns the definition that a caller needs in order to list, select, validate and call a tool. */
export function recordOf(tool: Tool): Record<string, unknown> {
  const { aliases, roles, scopes, outputOverflow, meta, labels } = tool;
  // A Standard Schema cannot be sent. Callers accept any context; the worker validates it.
  const context = isStandardSchema(tool.context) ? true : tool.context;
  const { id: _id, ...described } = describeTool(tool);
  const record = { ...described, aliases, context, roles, scopes, outputOverflow, meta, labels };
  // JSON omits undefined fields; an empty list is the default of its field.
  const fields = Object.entries(record)
    .filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return JSON.parse(JSON.stringify(Object.fromEntries(fields)));
}

export function digestOfRecord(record: Record<string, unknown>): string {
  return createHash("sha256").update(canonicalJson(record)).digest().subarray(0, 8)
    .toString("base64url");
}

/** The interval in which both sides check their calls. Silence is counted in these ticks. */
export const TICK_MS = 500;
/** A call that may not run twice goes to another worker if no worker accepts it within these ticks. */
export const TICKS_TO_ACCEPT = 4;
/** While a call runs, the worker sends a message at least once in this number of ticks. */
export const TICKS_TO_BEAT = 4;
/** A call is lost after this number of ticks without a message: three heartbeats. */
export const TICKS_TO_LOSE = 13;
/** The bytes of events that a worker may send before the caller grants more. */
export const FIRST_CREDIT = 1_048_576;
/** The caller grants more credit after it has consumed this number of bytes. */
export const CREDIT_STEP: number = FIRST_CREDIT / 2;
/** A smaller event counts as this many bytes, so that at most 64 events wait at the caller. */
const MIN_EVENT_BYTES = FIRST_CREDIT / 64;
/** The maximum difference of a call's timestamp and the worker's clock when the call starts. */
export const MAX_AGE_MS = 10_000;
export const MAX_SKEW_MS = 5_000;

export interface CallMessage {
  /** The id of this attempt. A worker accepts each attempt once. */
  readonly id: string;
  /** The time by the caller's clock, in milliseconds since 1970. */
  readonly time: number;
  readonly callId?: string | undefined;
  readonly principal?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  /** The host's context, for a tool that declares one; its tenant for other tools. */
  readonly context?: unknown;
  /** The trace of the call, in the form of W3C's `traceparent`. */
  readonly trace?: string | undefined;
  readonly arguments?: unknown;
  /** The ticket of a suspended call, and the answers to its questions. */
  readonly ticket?: string | undefined;
  readonly answers?: Answers | undefined;
  /** An id that is the same for all attempts to resume the call of an `idempotent` tool. */
  readonly run?: string | undefined;
  /** True if the caller cannot answer questions. */
  readonly mute?: true | undefined;
  /** The remaining time of the call, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

export function requestOf(
  { callId, arguments: args, ticket, answers = {} }: CallMessage,
  { id: name }: Tool,
): calls.ToolCall | calls.ResumedCall & Pick<calls.ToolCall, "name"> {
  return ticket === undefined ? { name, arguments: args, callId } : { name, ticket, answers };
}

/** @param run An id of all attempts to resume the call: only these attempts can use its ticket. */
export function contextOf(
  call: CallMessage,
  { idempotent }: Tool,
  run: string | undefined = call.run,
): calls.DispatchContext {
  const { sessionId, messageId, principal, context, timeoutMs, trace, mute } = call;
  return {
    ...{ sessionId, messageId, principal, context, timeoutMs },
    services: idempotent && run !== undefined ? { [calls.TICKET_RUN]: run } : {},
    ...(trace !== undefined && { trace: { headers: new Map([["traceparent", trace]]) } }),
    ...(mute === true && { onQuestion: () => null }),
  };
}

/** A message from the worker to the caller. */
export type Frame =
  /** The worker has a call that may not run twice, and waits for the caller's confirmation. */
  | { readonly type: "accepted" }
  | { readonly type: "beat" }
  /** The worker has rejected the call, and has not started it. Another worker may run it. */
  | { readonly type: "refused"; readonly why: string; readonly result?: ToolResult }
  | { readonly type: "metadata" | "output"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: calls.ToolProgress }
  | { readonly type: "result"; readonly result: ToolResult };

export type Control =
  /** Confirms the call: the caller has sent it to no other worker. */
  | { readonly go: true }
  | { readonly abort: string }
  /** Grants more bytes of events. `granted` is the sum of all grants, in case one of them was lost. */
  | { readonly credit: number; readonly granted?: number };

export function creditOf(bytes: number): number {
  return Math.max(bytes, MIN_EVENT_BYTES);
}

/** The header after the signatures: a byte, 1 if more parts follow, and a sequence number. */
const HEAD_BYTES = 5;
/** The maximum size of a part. Servers reject messages above `max_payload`, which is 1 MiB by default. */
const MAX_PART_BYTES = 524_288;
const ROOM_BYTES = 1_024;
const MAX_TOTAL_BYTES = 67_108_864;
/** Larger values are sent one after another. A smaller value fits into any server's messages. */
const SMALL_BYTES = 61_440;
/** The maximum number of unconfirmed bytes of large values. */
const MAX_UNCONFIRMED_BYTES = 4_194_304;
const MAX_SEQUENCE = 2 ** 32 - 1;

export interface OpenedPart {
  /** The position of the message in its stream: 0, 1, 2. */
  readonly sequence: number;
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
}

/** Checks and reads a message. Returns `undefined` if the signature is not valid for the subjects. */
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

export class Sender {
  readonly #connection: NatsConnection;
  readonly #seal: Seal;
  readonly #subject: string;
  readonly #reply: string;
  readonly #maxPart: number;
  #sequence = 0;
  #hasMoreParts = false;

  /** @param reply The reply subject, which also receives "no responders" from the server. */
  constructor(connection: NatsConnection, seal: Seal, subject: string, reply = "") {
    this.#connection = connection;
    this.#seal = seal;
    this.#subject = subject;
    this.#reply = reply;
    const { max_payload: most = MAX_PART_BYTES + ROOM_BYTES } = connection.info ?? {};
    this.#maxPart = Math.min(MAX_PART_BYTES, most - ROOM_BYTES);
  }

  /** True if a part of a value was sent, and other parts follow. No other value may be sent then. */
  get hasMoreParts(): boolean {
    return this.#hasMoreParts;
  }

  /**
   * Sends a value.
   *
   * @returns The size of the value in bytes.
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
    this.#hasMoreParts = next < text.length;
    const head = this.#seal.bytes;
    const message = new Uint8Array(head + HEAD_BYTES + part.length);
    message[head] = this.#hasMoreParts ? 1 : 0;
    new DataView(message.buffer).setUint32(head + 1, this.#sequence);
    this.#sequence = this.#sequence === MAX_SEQUENCE ? 0 : this.#sequence + 1;
    message.set(part, head + HEAD_BYTES);
    this.#seal.sign(message, this.#subject, this.#reply);
    const options = this.#reply === "" ? undefined : { reply: this.#reply };
    this.#connection.publish(this.#subject, message, options);
    return next;
  }
}

/**
 * Sends the values of many senders over one connection. Small values are sent immediately. Large
 * values are sent one after another, as fast as the server confirms them.
 */
export class Outbox {
  readonly #connection: NatsConnection;
  /** Large values are sent one after the other. */
  readonly #large = new Mutex();
  #unconfirmed = 0;
  #waiting = 0;
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
   * @returns The size of the value in bytes. For a large value, a promise of it, until it is sent.
   * @throws {Error} If the connection is closed or lost, or the user may not publish to the subject.
   */
  send(sender: Sender, value: unknown): number | Promise<number> {
    const text = encodeJson(value);
    if (text.length <= SMALL_BYTES) return sender.sendPart(text, 0);
    this.#waiting += text.length;
    return this.#large.run(() => this.#sendParts(sender, text)).finally(() => {
      this.#waiting -= text.length;
    });
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

export class Receiver {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #next = 0;

  /** The size of the last value in bytes. For an incomplete value, the size of its received parts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @returns The value, {@linkcode GAP} or {@linkcode SEEN}; `undefined` while parts are missing. */
  take({ sequence, isLast, bytes }: OpenedPart): unknown {
    // Sequence numbers wrap, so half of all numbers count as earlier, and half as later.
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
