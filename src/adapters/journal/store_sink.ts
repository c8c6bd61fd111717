/** A sink that stores a journal in a `CallStore`, for runtimes with and without files. */

import * as durable from "../../execute/durable/mod.ts";
import { checkWord, fail, numberFrom, readFields, systemClock } from "../../tool/mod.ts";
import { type JournalSink, readRecord } from "./sink.ts";

/** Options for {@linkcode storeSink}. */
export interface StoreSinkOptions {
  /** The name of the journal in the store: letters, digits, `_` and `-`. @default {"calls"} */
  readonly name?: string | undefined;
  /** The retention period in milliseconds. By default, records are never deleted. */
  readonly keepMs?: number | undefined;
}

const ACTION = "keep a journal in a store";
/** The size of an entry, in characters. A smaller entry is written again with more records. */
const PAGE_LENGTH = 65_536;
/** Each character has at most three bytes. */
const MAX_LINE = durable.MAX_STORED_BYTES / 3 - 1;

/** An entry of the store. `revision` is absent before it is written. */
interface Page {
  readonly key: string;
  readonly text: string;
  readonly revision?: number;
  readonly expiresAt?: number;
}

/**
 * Stores a journal in a store of calls, where it counts for the quota of its name. If another
 * process opens the journal, the writes of this process fail, so that the chain does not fork.
 *
 * @throws {TypeError | RangeError} If the store or an option is invalid.
 */
export function storeSink(store: durable.CallStore, options: StoreSinkOptions = {}): JournalSink {
  durable.checkStore(ACTION, store);
  const checks = { name: checkWord, keepMs: numberFrom(1) };
  const { name = "calls", keepMs } = readFields(ACTION, options, checks);
  const prefix = `journal.${name}`;
  durable.checkStoreKey(prefix);
  const now = (): number => store.now?.() ?? systemClock.timestamp();
  // Later pages have smaller keys, so that a list begins with the newest page.
  const keyOf = (line: string): string =>
    `${prefix}.${Number.MAX_SAFE_INTEGER - (readRecord(line)?.sequence ?? 0)}`;
  let newest: Page | undefined;

  async function write({ key, text, revision }: Page): Promise<Page> {
    const options = keepMs === undefined ? {} : { expiresAt: now() + keepMs };
    const value = Buffer.from(text);
    const written = revision === undefined
      ? await store.create(key, value, options)
      : await store.update(key, value, revision, options);
    if (written !== undefined) return { key, text, revision: written, ...options };
    // An earlier attempt may have written it, although it was rejected.
    const stored = await store.get(key);
    if (stored !== undefined && value.equals(stored.value)) return { key, text, ...stored };
    return fail(ACTION, `another process writes the journal "${name}"`);
  }

  return {
    maxLineLength: MAX_LINE,
    async open() {
      newest = undefined;
      for await (const { value, ...entry } of store.list(prefix)) {
        newest = { ...entry, text: Buffer.from(value).toString() };
        break;
      }
    },
    async append(lines) {
      let page = (newest?.expiresAt ?? Infinity) > now() ? newest : undefined;
      for (const line of lines) {
        if (page !== undefined && page.text.length + line.length < PAGE_LENGTH) {
          page = { ...page, text: `${page.text}${line}\n` };
        } else {
          // Writes even an unchanged page: this fails if another process has added records to it.
          if (page !== undefined) await write(page);
          page = { key: keyOf(line), text: `${line}\n` };
        }
      }
      if (page !== undefined) newest = await write(page);
    },
    async *pages(order) {
      const keys: string[] = [];
      for await (const { key, value } of store.list(prefix)) {
        if (order === "newest first") yield value;
        else keys.unshift(key);
      }
      for (const key of keys) {
        const stored = await store.get(key);
        if (stored !== undefined) yield stored.value;
      }
    },
  };
}
