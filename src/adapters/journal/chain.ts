/** The hash chain of a journal: each line has the hash of the previous line, and its own hash. */

import { createHmac, hash as digest } from "node:crypto";
import { fail } from "../../tool/mod.ts";
import type { Hash, JournalRecord } from "./record.ts";
import { MAX_LINE, readRecord } from "./sink.ts";

export function hashWith(key?: string): Hash {
  if (key === undefined) return (text) => digest("sha256", text, "base64url");
  if (key.length < 16) fail("hash a journal", "the key must have at least 16 characters");
  return (text) => createHmac("sha256", key).update(text).digest("base64url");
}

const HASH_LENGTH = 43;
const BEFORE = '{"previous":"';
const AFTER = ',"hash":"';
const FIELDS_START = BEFORE.length + HASH_LENGTH + 2;
const END_LENGTH = AFTER.length + HASH_LENGTH + 2;

/** The number and the hash of a record. */
export interface JournalHead {
  readonly sequence: number;
  readonly hash: string;
}

export const NO_RECORD: JournalHead = { sequence: 0, hash: "A".repeat(HASH_LENGTH) };

export function nextLine(
  { sequence: last, hash: previous }: JournalHead,
  { kind, ...fields }: { readonly kind?: unknown; readonly [name: string]: unknown },
  hash: Hash,
): { readonly line: string; readonly head: JournalHead } {
  const sequence = last + 1;
  // The kind is the first field, so that it is found without parsing.
  const record = { ...(kind !== undefined && { kind }), sequence, ...fields };
  const text = `${BEFORE}${previous}",${JSON.stringify(record).slice(1, -1)}`;
  const own = hash(text);
  return { line: `${text}${AFTER}${own}"}`, head: { sequence, hash: own } };
}

export function headOf(line: string, hash: Hash): JournalHead | undefined {
  const { sequence = 0, hash: own = "" } = readRecord(line) ?? {};
  return hash(line.slice(0, -END_LENGTH)) === own ? { sequence, hash: own } : undefined;
}

/** The outcome of {@linkcode verifyJournal}. */
export interface JournalVerdict {
  /** True if each record is unchanged and follows the previous one, and `head` was found. */
  readonly ok: boolean;
  /** The number of records whose hash is correct. */
  readonly records: number;
  /** The number of the first record. Above 1, earlier records are missing. */
  readonly first: number;
  /** The last record whose hash is correct. */
  readonly head: JournalHead;
  /** The first record with an invalid hash. */
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
 * @param chunks The bytes of its lines, in order: `sink.pages("oldest first")`, or files. A chunk is
 * read until the next one.
 * @throws {TypeError} If the key is too short.
 */
export async function verifyJournal(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { key, head: wanted = NO_RECORD }: VerifyOptions = {},
): Promise<JournalVerdict> {
  const hash = hashWith(key);
  const found = { records: 0, first: 0, head: NO_RECORD, interrupted: [] as number[], dropped: 0 };
  let hasEnded = true;

  function add(line: Buffer): string | undefined {
    const end = line.length - END_LENGTH;
    const own = hash(line.subarray(0, end));
    const isFirst = found.records === 0;
    // With another key, the hash of the first record is invalid, too.
    const changed = isFirst ? "it was changed, or written with another key" : "it was changed";
    if (line.toString("latin1", end) !== `${AFTER}${own}"}`) return changed;
    // Only `"kind"` and `"sequence"` can be the first field.
    const isNote = line[FIELDS_START + 1] === 107;
    const { kind, count = 0, sequence: first = 0 }: Partial<JournalRecord> = isNote || isFirst
      ? readRecord(line.toString()) ?? {}
      : {};
    if (isFirst) {
      if (!(first >= 1)) return changed;
      found.first = first;
      hasEnded = first === 1;
    } else if (line.toString("latin1", BEFORE.length, FIELDS_START - 2) !== found.head.hash) {
      return "it does not follow the record before: one was removed, added or moved";
    }
    const sequence = found.first + found.records;
    if (kind === undefined && hasEnded) return "no writer had begun before it";
    if (wanted.sequence === sequence && wanted.hash !== own) return "it is not the expected record";
    if (kind === "begin" && !hasEnded) found.interrupted.push(sequence - 1);
    if (kind === "dropped") found.dropped += count;
    else if (kind !== undefined) hasEnded = kind === "end";
    found.head = { sequence, hash: own };
    found.records++;
    return undefined;
  }

  function verdict(why?: string): JournalVerdict {
    const { first, head, interrupted } = found;
    let sequence = head.sequence + 1;
    const isFound = first <= wanted.sequence && wanted.sequence <= head.sequence;
    if (why === undefined && wanted.sequence !== 0 && !isFound) {
      why = `it is missing: the journal had ${wanted.sequence} records`;
      sequence = Math.min(sequence, wanted.sequence);
    }
    if (why !== undefined) return { ok: false, ...found, problem: { sequence, why } };
    if (!hasEnded) interrupted.push(head.sequence);
    return { ok: true, ...found };
  }

  let rest: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      // Only a line that two chunks share is copied.
      const part = bytes.subarray(start, end);
      const why = add(rest.length > 0 ? Buffer.concat([...rest, part]) : part);
      if (why !== undefined) return verdict(why);
      rest = [];
      length = 0;
      start = end + 1;
    }
    length += bytes.length - start;
    if (length > MAX_LINE) return verdict("it is too long");
    rest.push(Buffer.from(bytes.subarray(start)));
  }
  return verdict(length > 0 ? "it is incomplete: its writer was interrupted" : undefined);
}
