/** The layer that writes one record for each call. It only observes; the records are written later. */

import { type Call, type CallNote, type Layer, notesOf } from "../../execute/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import {
  anyValue,
  attemptOr,
  type Check,
  checkPort,
  checkTexts,
  checkWord,
  type Clock,
  fail,
  isObject,
  isWord,
  JsonReader,
  numberFrom,
  oneOf,
  readFields,
  systemClock,
  TIME_OVER,
  type Tool,
  within,
} from "../../tool/mod.ts";
import { hashWith, headAfter, type JournalHead, nextLine, NO_RECORD, readRecord } from "./chain.ts";
import {
  type EndedCall,
  type Hash,
  type JournalDetail,
  type JournalRecord,
  RecordMaker,
} from "./record.ts";

/** Keeps the lines of a journal. A sink belongs to one journal. */
export interface JournalSink {
  /** Opens the sink, and returns its last lines, oldest first. The chain continues the last one. */
  open(): Promise<readonly string[]>;
  /** Appends lines of JSON: all or none. If it rejects, the same lines are passed again. */
  append(lines: readonly string[]): Promise<void>;
  /** Makes the appended lines durable. */
  sync?(): Promise<void>;
  close?(): Promise<void>;
}

/** Options for {@linkcode journal}. */
export interface JournalOptions {
  /** Keeps the records. */
  readonly sink: JournalSink;
  /** How much of the arguments is recorded. @default {"digest"} */
  readonly arguments?: JournalDetail | undefined;
  /**
   * What happens while the sink fails or the buffer is full. `drop-and-count`: calls run, and a later
   * record has the number of calls without one. `refuse-calls`: calls fail with `unavailable`. The
   * reason is passed to the dispatcher's `onError`.
   */
  readonly onFailure: "drop-and-count" | "refuse-calls";
  /** Further names of secret arguments, such as `pin`. Case and separators are ignored. */
  readonly secrets?: readonly string[] | undefined;
  /** A secret of at least 16 characters, with which the hashes become HMACs. */
  readonly key?: string | undefined;
  /** The longest time from a call to the writing of its record, in milliseconds. @default {100} */
  readonly flushMs?: number | undefined;
  /** The size of the records that wait to be written, in characters. @default {16_777_216} */
  readonly maxBuffered?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** The state of a journal. */
export interface JournalStats {
  /** The last record. Keep it elsewhere: a removed end of the journal is found with it. */
  readonly head: JournalHead;
  /** The last record that the sink has made durable. */
  readonly synced: JournalHead;
  /** The number of calls whose records wait to be written. */
  readonly waiting: number;
  /** The number of calls without a record, since the start. */
  readonly dropped: number;
  /** The reason why the sink cannot be written now. */
  readonly failure?: string;
}

/** A layer that records calls. */
export interface Journal extends Layer, AsyncDisposable {
  stats(): JournalStats;
  /** The newest records of the process, newest first: at most 1,000, and `maxBuffered` characters. */
  recent(): readonly JournalRecord[];
  /**
   * Writes the records that wait. Rejects if the sink cannot be opened or written: call it at the
   * start to find that out before the first call.
   */
  flush(): Promise<void>;
  /** Writes the records that wait and the end, and closes the sink. */
  close(): Promise<void>;
}

const ACTION = "make a journal";

const CHECKS = {
  sink: anyValue as Check<JournalSink>,
  arguments: oneOf<JournalDetail>(["none", "digest", "redacted", "full"]),
  onFailure: oneOf<JournalOptions["onFailure"]>(["drop-and-count", "refuse-calls"]),
  secrets: checkTexts,
  key: checkWord,
  flushMs: numberFrom(0, 60_000),
  maxBuffered: numberFrom(1),
  clock: anyValue as Check<Clock>,
} satisfies { readonly [Field in keyof JournalOptions]-?: Check };

const DEFAULTS = {
  arguments: "digest" as JournalDetail,
  secrets: [] as readonly string[],
  flushMs: 100,
  maxBuffered: 16_777_216,
  clock: systemClock,
};

type Settings = typeof DEFAULTS & Pick<JournalOptions, "sink" | "onFailure">;

/** The weight of records that are made and written together. More would delay other work. */
const BATCH_SIZE = 262_144;
const BATCHES_PER_SYNC = 32;
const RETRY_MS = 1_000;
const CLOSE_MS = 10_000;
const MAX_RECENT = 1_000;
/** The weight of a record besides its texts, in characters. */
const WEIGHT = 512;

/**
 * Creates a layer that records every call of a dispatcher, also of unknown and hidden tools. Stage
 * `call`. Metadata, progress, output and answers are never recorded.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { journal } from "@plue/tools/journal";
 *
 * const sink = { open: async () => [], append: async () => {} }; // keeps nothing
 * const records = journal({ sink, onFailure: "refuse-calls" });
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { layers: [records] });
 * await dispatcher.dispatch({ name: "ping" }, { principal: "ann" });
 * await records.close();
 * const [, call] = records.recent(); // the newest record is the end of the journal
 * assert.deepEqual([call?.tool, call?.principal, call?.outcome], ["ping", "ann", "ok"]);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function journal(options: JournalOptions): Journal {
  const { key, ...read } = readFields(ACTION, options, CHECKS, (name) => `its option ${name}`);
  const { sink, onFailure } = read;
  if (!isObject(sink) || onFailure === undefined) fail(ACTION, "it needs sink and onFailure");
  checkPort(ACTION, "sink", sink, ["open", "append"]);
  return new CallJournal({ ...DEFAULTS, ...read, sink, onFailure }, hashWith(key));
}

/** The arguments of a running tool, and how often it was started. */
interface ToolStart {
  readonly call: Call;
  readonly text: string | undefined;
  attempts: number;
}

class CallJournal implements Journal {
  readonly name = "journal";
  readonly stage = "call";
  readonly #settings: Settings;
  readonly #hash: Hash;
  readonly #records: RecordMaker;
  #newest: ToolStart | undefined;
  readonly #others: Map<Call, ToolStart> = new Map();
  readonly #waiting: EndedCall[] = [];
  #weight = 0;
  #dropped = { total: 0, unwritten: 0 };
  #disarm: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #isOpen = false;
  #isClosed = false;
  #failure: Error | undefined;
  /** The last call: its dispatcher receives the errors of the sink. */
  #last: Pick<Call, "report"> | undefined;
  #head = NO_RECORD;
  #synced = NO_RECORD;
  /** Lines of the chain that the sink does not have yet. */
  #lines: string[] = [];
  #recent: readonly string[] = [];

  get #hasWork(): boolean {
    return this.#waiting.length + this.#lines.length + this.#dropped.unwritten > 0;
  }

  constructor(settings: Settings, hash: Hash) {
    this.#settings = settings;
    this.#hash = hash;
    this.#records = new RecordMaker(settings.arguments, settings.secrets, hash);
  }

  /** Applies only while the sink fails, so that other calls cost no promise. */
  readonly when = (): boolean => this.#failure !== undefined || this.#isClosed;

  for(): ReturnType<NonNullable<Layer["for"]>> {
    if (this.#settings.onFailure === "drop-and-count") return undefined;
    const why = "its journal cannot be written now";
    return (call) => call.fail("unavailable", why);
  }

  observe(tool: Tool): ReturnType<NonNullable<Layer["observe"]>> {
    return {
      toolStarted: (call) => {
        const run = this.#newest?.call === call ? this.#newest : this.#others.get(call);
        if (run !== undefined) return void run.attempts++;
        // Most tools end before another one starts: only the others are kept in the map.
        if (this.#newest !== undefined) this.#others.set(this.#newest.call, this.#newest);
        // The tool may change its arguments, so they are written before it runs.
        this.#newest = { call, text: this.#textOf(call.plainArguments), attempts: 1 };
      },
      ended: (call, result) => {
        let run = this.#newest;
        if (run?.call === call) this.#newest = undefined;
        else if ((run = this.#others.get(call)) !== undefined) this.#others.delete(call);
        const { request: { arguments: asked = {} }, options, callId } = call;
        const text = run?.text ??
          this.#textOf(call.plainArguments ?? new JsonReader({}).read(asked));
        this.#last = call;
        this.#add(options, callId, text, { name: tool.id, tool, result }, run, notesOf(call));
      },
    };
  }

  readonly unresolved: NonNullable<Layer["unresolved"]> = (call, options, result, report, from) => {
    const read = (field: "name" | "callId"): string | undefined =>
      attemptOr(undefined, () => isWord(call[field]) ? call[field].slice(0, 256) : undefined);
    const name = read("name") ?? "";
    const text = attemptOr(undefined, () => this.#textOf(new JsonReader({}).read(call.arguments)));
    const hiddenBy = from && attemptOr(undefined, () => criterionOf(from, name));
    this.#last = { report };
    const notes = hiddenBy && [hiddenBy];
    this.#add(options, read("callId"), text, { name, tool: undefined, result }, undefined, notes);
  };

  /** Only for JSON that is not too deep: other values have no names by which secrets are found. */
  #textOf(args: unknown): string | undefined {
    return this.#settings.arguments !== "none" && isObject(args) ? jsonOf(args) : undefined;
  }

  #add(
    { principal, sessionId: session, trace }: Call["options"],
    callId: string | undefined,
    args: string | undefined,
    { name, tool, result }: Pick<EndedCall, "name" | "tool" | "result">,
    run: ToolStart | undefined,
    notes: readonly CallNote[] | undefined,
  ): void {
    const { maxBuffered, clock, flushMs } = this.#settings;
    const texts = [args, result.ok ? jsonOf(result.content) : undefined] as const;
    const weight = weightOf(texts);
    if (this.#isClosed || this.#weight + weight > maxBuffered) {
      this.#dropped.total++;
      this.#dropped.unwritten++;
      if (!this.#isClosed) this.#arm(flushMs);
      const why = this.#isClosed ? "the journal is closed" : "the buffer of the journal is full";
      return this.#setFailure(new RangeError(`Cannot record a call: ${why}`));
    }
    this.#weight += weight;
    const facts = { time: clock.timestamp(), callId, principal, session };
    const traceParent = trace?.headers?.get("traceparent");
    const attempts = run?.attempts ?? 0;
    this.#waiting.push({ facts, name, tool, texts, result, attempts, notes, traceParent });
    if (this.#disarm === undefined) this.#arm(flushMs);
  }

  #arm(ms: number): void {
    if (this.#disarm !== undefined || this.#writing !== undefined) return;
    this.#disarm = this.#settings.clock.setTimeout(() => void this.flush().catch(() => {}), ms);
  }

  /** Reports the first failure, until the sink works again. */
  #setFailure(error: Error): void {
    if (this.#failure === undefined) this.#last?.report("internal", error);
    this.#failure ??= error;
  }

  flush(): Promise<void> {
    this.#disarm?.();
    this.#disarm = undefined;
    return this.#writing ??= this.#write().then(() => void (this.#failure = undefined), (error) => {
      this.#setFailure(error);
      throw error;
    }).finally(() => {
      this.#writing = undefined;
      if (this.#hasWork && !this.#isClosed) this.#arm(this.#failure === undefined ? 0 : RETRY_MS);
    });
  }

  async #write(): Promise<void> {
    if (!this.#isOpen) await this.#open();
    for (let batches = 1; this.#hasWork; batches++) {
      if (this.#lines.length === 0) this.#makeLines();
      await this.#settings.sink.append(this.#lines);
      this.#keepRecent([...this.#recent, ...this.#lines]);
      this.#lines = [];
      if (batches % BATCHES_PER_SYNC === 0) await this.#sync();
    }
    if (this.#synced !== this.#head) await this.#sync();
  }

  async #open(): Promise<void> {
    const lines = await this.#settings.sink.open();
    const last = lines.at(-1);
    this.#head = last === undefined ? NO_RECORD : headAfter(last, this.#hash) ??
      fail("continue the journal", "its last record was changed, or its key");
    this.#keepRecent(lines);
    this.#isOpen = true;
    this.#line({ kind: "begin", clean: last === undefined || readRecord(last)?.kind === "end" });
  }

  #makeLines(): void {
    let size = 0;
    const last = this.#waiting.findIndex(({ texts }) => (size += weightOf(texts)) > BATCH_SIZE);
    for (const call of this.#waiting.splice(0, last < 0 ? BATCH_SIZE : last + 1)) {
      this.#weight -= weightOf(call.texts);
      const record = attemptOr(undefined, () => this.#records.recordOf(call));
      this.#line(record ?? this.#records.outlineOf(call));
    }
    const { unwritten: count } = this.#dropped;
    this.#dropped.unwritten = 0;
    if (count > 0) this.#line({ kind: "dropped", count });
  }

  #keepRecent(lines: readonly string[]): void {
    const newest = lines.slice(-MAX_RECENT);
    let size = newest.reduce((sum, { length }) => sum + length, 0);
    while (size > this.#settings.maxBuffered) size -= newest.shift()?.length ?? size;
    this.#recent = newest;
  }

  #line(fields: object): void {
    const time = this.#settings.clock.timestamp();
    const { line, head } = nextLine(this.#head, { time, ...fields }, this.#hash);
    this.#head = head;
    this.#lines.push(line);
  }

  async #sync(): Promise<void> {
    const head = this.#head;
    await this.#settings.sink.sync?.();
    this.#synced = head;
  }

  stats(): JournalStats {
    const { message } = this.#failure ?? {};
    const counts = { waiting: this.#waiting.length, dropped: this.#dropped.total };
    const heads = { head: this.#head, synced: this.#synced };
    return { ...heads, ...counts, ...(message !== undefined && { failure: message }) };
  }

  recent(): readonly JournalRecord[] {
    return this.#recent.toReversed().flatMap((line) => readRecord(line) ?? []);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { clock, sink } = this.#settings;
    const end = async (): Promise<void> => {
      await this.#writing?.catch(() => {});
      await this.flush();
      this.#line({ kind: "end" });
      await this.#write();
    };
    try {
      if (await within(clock, CLOSE_MS, end()) === TIME_OVER) {
        throw new RangeError(`Cannot close the journal: its sink took over ${CLOSE_MS} ms`);
      }
    } finally {
      await sink.close?.();
    }
  }

  readonly [Symbol.asyncDispose] = (): Promise<void> => this.close();
}

/** Returns the criterion that hides a tool; `undefined` if there is no such tool. */
function criterionOf(toolset: Toolset, id: string): CallNote | undefined {
  const hidden = toolset.explain(id).steps.find(({ passed }) => !passed);
  if (hidden === undefined) return undefined;
  const { step, name, reason } = hidden;
  return { by: "criterion", name: name ? `${step} ${name}` : step, verdict: "deny", reason };
}

function jsonOf(value: unknown): string | undefined {
  return attemptOr(undefined, () => JSON.stringify(value));
}

function weightOf(texts: EndedCall["texts"]): number {
  return texts.reduce((sum, text = "") => sum + text.length, WEIGHT);
}
