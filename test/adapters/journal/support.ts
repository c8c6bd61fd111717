/** Journals in memory, and readers of their records. */

import {
  journal,
  type JournalOptions,
  type JournalRecord,
  type JournalSink,
} from "@plue/tools/journal";
import { type FakeTool, type Fixture, fixture } from "../../unit/execute/support.ts";
import type { ToolDispatcherOptions } from "@plue/tools";

/** A sink in memory. Its functions may be replaced. */
export function memorySink(lines: string[] = []): JournalSink & { readonly lines: string[] } {
  return {
    lines,
    append: (added) => Promise.resolve(void lines.push(...added)),
    pages: () => bytesOf(lines, Infinity),
  };
}

export interface Recorded extends Fixture {
  readonly journal: ReturnType<typeof journal>;
  readonly sink: ReturnType<typeof memorySink>;
  /** The records of the calls, oldest first. */
  records(): Promise<readonly JournalRecord[]>;
}

/** A dispatcher of tools with a journal. */
export function recorded(
  tools: readonly FakeTool[],
  options: Partial<JournalOptions> = {},
  more: ToolDispatcherOptions = {},
): Recorded {
  const sink = memorySink();
  const kept = journal({ sink, onFailure: "drop-and-count", ...options });
  const made = fixture(tools, { ...more, layers: [kept, ...(more.layers ?? [])] });
  return {
    ...made,
    journal: kept,
    sink,
    async records() {
      await kept.flush();
      return recordsIn(sink.lines).filter(({ kind }) => kind === undefined);
    },
  };
}

export function recordsIn(lines: readonly string[]): readonly JournalRecord[] {
  return lines.map((line) => JSON.parse(line));
}

/** The bytes of lines, for `verifyJournal`. By default, the chunks end in the middle of lines. */
export async function* bytesOf(lines: readonly string[], size = 1_000): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}
