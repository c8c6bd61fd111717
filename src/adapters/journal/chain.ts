/** The chain of a journal: each line has the hash of the line before, and its own. */

import { createHmac, hash } from "node:crypto";
import { attemptOr, fail, isObject } from "../../tool/mod.ts";
import type { Hash, JournalRecord } from "./record.ts";

export function hashWith(key?: string): Hash {
  if (key === undefined) return (text) => hash("sha256", text, "base64url");
  if (key.length < 16) fail("hash a journal", "its key must have at least 16 characters");
  return (text) => createHmac("sha256", key).update(text).digest("base64url");
}

/** The length of a hash in base64url. */
const HASH_LENGTH = 43;
const BEFORE = '{"previous":"';
const AFTER = ',"hash":"';
/** The length of the end of a line: `,"hash":"…"}`. */
const END_LENGTH = AFTER.length + HASH_LENGTH + 2;

/** The number and the hash of a record. */
export interface JournalHead {
  readonly sequence: number;
  readonly hash: string;
}

export const NO_RECORD: JournalHead = { sequence: 0, hash: "A".repeat(HASH_LENGTH) };

/** Writes the next line of a chain, and returns it with the new head. */
export function nextLine(
  { sequence: last, hash: previous }: JournalHead,
  { kind, ...fields }: { readonly kind?: unknown; readonly [name: string]: unknown },
  hash: Hash,
): { readonly line: string; readonly head: JournalHead } {
  const sequence = last + 1;
  // A kind comes first, so that it is found without parsing.
  const record = kind === undefined ? { sequence, ...fields } : { kind, sequence, ...fields };
  const text = `${BEFORE}${previous}",${JSON.stringify(record).slice(1, -1)}`;
  const own = hash(text);
  return { line: `${text}${AFTER}${own}"}`, head: { sequence, hash: own } };
}

export function readRecord(line: string): JournalRecord | undefined {
  const record: unknown = attemptOr(undefined, () => JSON.parse(line));
  return isObject(record) ? record as unknown as JournalRecord : undefined;
}

/** Returns the head after a line, if the hash of the line fits. */
export function headAfter(line: string, hash: Hash): JournalHead | undefined {
  const record = readRecord(line);
  return record !== undefined && hash(line.slice(0, -END_LENGTH)) === record.hash
    ? { sequence: record.sequence, hash: record.hash }
    : undefined;
}

/** The outcome of {@linkcode verifyJournal}. */
export interface JournalVerdict {
  /** True if each record is unchanged and follows the one before, and `head` was found. */
  readonly ok: boolean;
  /** The number of records that fit. */
  readonly records: number;
  /** The number of the first record. Above 1, earlier records are missing. */
  readonly first: number;
  /** The last record that fits. */
  readonly head: JournalHead;
  /** The first record that does not fit. */
  readonly problem?: { readonly sequence: number; readonly why: string };
  /**
   * The records after which a writer was interrupted. Records that it had not written are lost. The
   * last number is the one of `head` if the journal was not closed.
   */
  readonly interrupted: readonly number[];
  /** The number of calls without a record, because a sink failed. */
  readonly dropped: number;
}

/** Options for {@linkcode verifyJournal}. */
export interface VerifyOptions {
  /** The key of the journal. */
  readonly key?: string | undefined;
  /** A record that must be in the journal, from an earlier verdict or from `journal.stats()`. */
  readonly head?: JournalHead | undefined;
}

/**
 * Verifies a journal, without parsing each record.
 *
 * @param chunks The bytes of its lines, in order. A chunk is read until the next one.
 * @throws {TypeError} If the key is too short.
 */
export async function verifyJournal(
  chunks: AsyncIterable<Uint8Array>,
  { key, head: wanted }: VerifyOptions = {},
): Promise<JournalVerdict> {
  const check = new ChainCheck(hashWith(key), wanted);
  let rest: Buffer[] = [];
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      // Only a line that two chunks share is copied.
      const shared = rest.length > 0 ? Buffer.concat([...rest, bytes.subarray(0, end)]) : undefined;
      const fits = shared ? check.take(shared, 0, shared.length) : check.take(bytes, start, end);
      if (!fits) return check.verdict();
      rest = [];
      start = end + 1;
    }
    if (start < bytes.length) rest.push(Buffer.from(bytes.subarray(start)));
  }
  if (rest.length > 0) check.fail("it is incomplete: its writer was interrupted");
  return check.verdict();
}

class ChainCheck {
  readonly #hash: Hash;
  readonly #wanted: JournalHead;
  readonly #found = { records: 0, first: 0, interrupted: [] as number[], dropped: 0 };
  #head: JournalHead = NO_RECORD;
  #hasEnded = true;
  #hasFoundWanted = false;
  #problem: JournalVerdict["problem"];

  constructor(hash: Hash, wanted: JournalHead = NO_RECORD) {
    this.#hash = hash;
    this.#wanted = wanted;
  }

  fail(why: string): false {
    this.#problem = { sequence: this.#head.sequence + 1, why };
    return false;
  }

  /** Checks the next line, which is a part of `bytes`. Returns false if it does not fit. */
  take(bytes: Buffer, start: number, end: number): boolean {
    const found = this.#found;
    const before = start + BEFORE.length;
    const parse = (): Partial<JournalRecord> =>
      readRecord(bytes.toString("utf8", start, end)) ?? {};
    if (end < before + END_LENGTH) return this.fail("it is too short");
    const hash = this.#hash(bytes.subarray(start, end - END_LENGTH));
    if (bytes.toString("latin1", end - END_LENGTH, end) !== `${AFTER}${hash}"}`) {
      return this.fail("it was changed");
    }
    if (found.records === 0) {
      found.first = Number(parse().sequence);
      this.#hasEnded = found.first === 1;
    } else if (bytes.toString("latin1", before, before + HASH_LENGTH) !== this.#head.hash) {
      return this.fail("it does not follow the record before: one was removed, added or moved");
    }
    const sequence = found.first + found.records;
    // `"kind"` and `"sequence"` begin behind the hash, its quote, the comma and a quote.
    if (bytes[before + HASH_LENGTH + 3] === 107) this.#note(parse(), sequence);
    else if (this.#hasEnded) return this.fail("no writer had begun before it");
    if (this.#wanted.sequence === sequence) {
      if (this.#wanted.hash !== hash) return this.fail("it is not the expected record");
      this.#hasFoundWanted = true;
    }
    this.#head = { sequence, hash };
    found.records++;
    return true;
  }

  #note({ kind, count = 0 }: Partial<JournalRecord>, sequence: number): void {
    if (kind === "begin" && !this.#hasEnded) this.#found.interrupted.push(sequence - 1);
    if (kind === "dropped") this.#found.dropped += count;
    else this.#hasEnded = kind === "end";
  }

  verdict(): JournalVerdict {
    const { sequence } = this.#wanted;
    if (this.#problem === undefined && sequence > 0 && !this.#hasFoundWanted) {
      const why = `it is missing: the journal had ${sequence} records`;
      this.#problem = { sequence: Math.min(sequence, this.#head.sequence + 1), why };
    }
    const problem = this.#problem;
    const isOpen = !this.#hasEnded && problem === undefined;
    return {
      ok: problem === undefined,
      ...this.#found,
      head: this.#head,
      ...(problem && { problem }),
      interrupted: [...this.#found.interrupted, ...(isOpen ? [this.#head.sequence] : [])],
    };
  }
}
