/** The port of sinks, which store the lines of a journal, and the reader of their records. */

import { attemptOr, isObject } from "../../tool/mod.ts";
import type { JournalRecord } from "./record.ts";

/** Stores the lines of a journal. A sink belongs to one journal. */
export interface JournalSink {
  /** The maximum length of a line. A record that is longer has no values, such as arguments. */
  readonly maxLineLength?: number;
  /** Prepares writing. Rejects if another process writes the journal. */
  open?(): Promise<void>;
  /** Appends lines atomically and durably. If it rejects, the same lines are passed again. */
  append(lines: readonly string[]): Promise<void>;
  close?(): Promise<void>;
  /**
   * Yields the stored lines as bytes, with `\n` at the end of each line. Pages are in the given
   * order. Each has complete lines, oldest first, and is used before the next page. A sink that
   * cannot read yields nothing: its journal begins a new chain. Does not need `open`.
   */
  pages(order: "newest first" | "oldest first"): AsyncIterable<Uint8Array>;
}

/** The maximum length of a line that is read, in bytes. */
export const MAX_LINE: number = 2 ** 26;

/** Options for {@linkcode readJournal}. */
export interface ReadJournalOptions {
  /** Yields only the records of this call, and of the calls of its program (`<callId>.0`, …). */
  readonly callId?: string | undefined;
}

/**
 * Reads the records of a journal, newest first, even while it is written. Lines that are not JSON are
 * skipped: use `verifyJournal` to find them.
 *
 * @example Usage
 * ```ts ignore
 * for await (const { tool, outcome } of readJournal(jsonLines("calls.jsonl"))) {
 *   console.log(tool, outcome);
 * }
 * ```
 */
export async function* readJournal(
  sink: Pick<JournalSink, "pages">,
  { callId }: ReadJournalOptions = {},
): AsyncGenerator<JournalRecord> {
  const text = callId === undefined ? "" : JSON.stringify(callId).slice(0, -1);
  for await (const line of linesOf(sink)) {
    const record = line.includes(text) ? readRecord(line) : undefined;
    if (record === undefined) continue;
    const { callId: own = "" } = record;
    if (callId === undefined || own === callId || own.startsWith(`${callId}.`)) yield record;
  }
}

export async function* linesOf(sink: Pick<JournalSink, "pages">): AsyncGenerator<string> {
  // Awaited, so that a sink that rejects instead of yielding does not end the process.
  for await (const page of await sink.pages("newest first")) {
    const lines = new TextDecoder().decode(page).split("\n");
    // The last part is empty, or a line that is being written.
    yield* lines.slice(0, -1).reverse();
  }
}

export function readRecord(line: string): JournalRecord | undefined {
  const record: unknown = attemptOr(undefined, () => JSON.parse(line));
  return isObject(record) ? record as unknown as JournalRecord : undefined;
}
