/** `plue journal`: shows and verifies the journal in a file. */

import { setTimeout as sleep } from "node:timers/promises";
import * as journals from "../adapters/journal/mod.ts";
import { attemptOr, once } from "../tool/mod.ts";
import { CommandError, counted, EXIT, oneLine, type Terminal, usageError } from "./terminal.ts";

interface JournalFlags {
  readonly limit?: number;
  readonly follow?: boolean;
  readonly head?: string;
}

interface Counts {
  readonly tool: string;
  calls: number;
  durationMs: number;
  readonly outcomes: Record<string, number>;
}

const FOLLOW_MS = 500;

/** The action of each flag. */
const FLAGS: Readonly<Record<string, string>> = { limit: "tail", follow: "tail", head: "verify" };

/** @returns The exit code: 1 if the journal is not intact, or has no record of the call. */
export async function journal(
  action: "tail" | "verify" | "show" | "stats",
  words: readonly string[],
  flags: JournalFlags,
  terminal: Terminal,
): Promise<number> {
  const [file, callId, ...more] = [...words].reverse();
  if (file === undefined || more.length > 0 || (action === "show") !== (callId !== undefined)) {
    const wanted = "name its file; only show needs the id of a call before it";
    throw usageError(`Cannot ${action} a journal: ${wanted}`);
  }
  const unused = Object.keys(flags).find((flag) =>
    FLAGS[flag] !== undefined && FLAGS[flag] !== action
  );
  if (unused !== undefined) {
    throw usageError(`Cannot ${action} a journal: --${unused} has no effect here; omit it`);
  }
  const sink = journals.jsonLines(file);
  if (action === "tail") return await tail(sink, flags, terminal);
  if (action === "verify") return await verify(sink, flags, terminal);
  if (action === "stats") return await stats(sink, terminal);
  const records: journals.JournalRecord[] = [];
  for await (const record of journals.readJournal(sink, { callId })) records.push(record);
  if (records.length === 0) {
    throw new CommandError(`Cannot show the call: ${file} has no record with the id "${callId}"`);
  }
  terminal.printJson(records.reverse());
  return EXIT.ok;
}

type Sink = ReturnType<typeof journals.jsonLines>;

/** Prints the last records, oldest first, and with `--follow` the later ones until Ctrl-C. */
async function tail(sink: Sink, flags: JournalFlags, terminal: Terminal): Promise<number> {
  const { limit = 20, follow = false } = flags;
  const { signal } = terminal.io;
  for (let last = 0, most = limit;; most = Infinity) {
    const news: journals.JournalRecord[] = [];
    for await (const record of journals.readJournal(sink)) {
      if (record.sequence <= last || news.length === most) break;
      news.push(record);
    }
    for (const record of news.reverse()) {
      terminal.printForeign(terminal.isJson ? JSON.stringify(record) : lineOf(record));
    }
    last = news.at(-1)?.sequence ?? last;
    if (!follow) return EXIT.ok;
    await sleep(FOLLOW_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted) return EXIT.ok;
  }
}

function lineOf(record: journals.JournalRecord): string {
  const { time, kind, outcome, tool, principal, callId, durationMs, count, message } = record;
  const what = kind === undefined ? [outcome, tool, principal ?? "-", callId] : [kind, count];
  const took = durationMs === undefined ? undefined : `${durationMs.toFixed(1)} ms`;
  // A record may be forged.
  const date = attemptOr("(no time)", () => new Date(time).toISOString());
  const parts = [record.sequence, date, ...what, took, message];
  return parts.filter((part) => part !== undefined).map((part) => oneLine(`${part}`, 1_000))
    .join("  ");
}

async function verify(sink: Sink, { head }: JournalFlags, terminal: Terminal): Promise<number> {
  const [, sequence, hash = ""] = /^(\d+):([\w-]{43})$/.exec(head ?? "") ?? [];
  if (head !== undefined && sequence === undefined) {
    throw usageError("Cannot verify a journal: --head must be the number and the hash, 12:Ab3…");
  }
  const key = terminal.io.env["PLUE_JOURNAL_KEY"];
  const verdict = await journals.verifyJournal(sink.pages("oldest first"), {
    key,
    ...(sequence !== undefined && { head: { sequence: Number(sequence), hash } }),
  });
  const { ok, records, first, problem, interrupted, dropped } = verdict;
  terminal.printResult(verdict, () =>
    [
      ok
        ? `${counted(records, "record")} from number ${first}, unchanged and in order`
        : `Record ${problem?.sequence} does not fit: ${problem?.why}`,
      `Head: ${verdict.head.sequence}:${verdict.head.hash}`,
      ...interrupted.length > 0
        ? [`Writers were interrupted after: ${interrupted.join(", ")}`]
        : [],
      ...dropped > 0 ? [`Calls without a record: ${dropped}`] : [],
    ].join("\n"));
  return ok ? EXIT.ok : EXIT.failed;
}

async function stats(sink: Sink, terminal: Terminal): Promise<number> {
  const tools = new Map<string, Counts>();
  for await (const record of journals.readJournal(sink)) {
    if (record.kind !== undefined) continue;
    // Callers choose the names of unknown tools, so that there may be any number.
    const tool = record.definition === undefined ? "(unknown)" : record.tool ?? "";
    const none: Counts = { tool, calls: 0, durationMs: 0, outcomes: {} };
    const counts = once(tools, tool, () => none);
    const { outcome = "" } = record;
    counts.calls++;
    counts.durationMs += record.durationMs ?? 0;
    counts.outcomes[outcome] = (counts.outcomes[outcome] ?? 0) + 1;
  }
  const list = [...tools.values()].sort((a, b) => b.calls - a.calls);
  terminal.printResult({ tools: list }, () =>
    terminal.table(
      ["TOOL", "CALLS", "MEAN", "OUTCOMES"],
      list.map(({ tool, calls, durationMs, outcomes }) => [
        ...[tool, String(calls), `${(durationMs / calls).toFixed(1)} ms`],
        Object.entries(outcomes).map(([code, count]) => `${code} ${count}`).join(", "),
      ]),
    ));
  return EXIT.ok;
}
