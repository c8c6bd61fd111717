/** The layer that writes one record for each call, after the call. */

import { type Call, type CallNote, type Layer, notesOf } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { attemptOr, fail, type Tool, type ToolResult } from "../../tool/mod.ts";
import { hashWith, headOf, type JournalHead, nextLine, NO_RECORD } from "./chain.ts";
import {
  type EndedCall,
  type Hash,
  type JournalDetail,
  type JournalRecord,
  recordMaker,
} from "./record.ts";
import { type JournalSink, linesOf, readJournal, type ReadJournalOptions } from "./sink.ts";

/** Options for {@linkcode journal}. */
export interface JournalOptions {
  /** Keeps the records. */
  readonly sink: JournalSink;
  /** The recorded part of the arguments. @default {"digest"} */
  readonly arguments?: JournalDetail | undefined;
  /**
   * The handling of calls while the sink fails or the buffer is full. `drop-and-count`: calls run,
   * and a later record has the number of calls without one. `refuse-calls`: calls fail with
   * `unavailable`. The reason is passed to the dispatcher's `onError`.
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
  readonly clock?: check.Clock | undefined;
}

/** The state of a journal. */
export interface JournalStats {
  /** The last stored record. Store it elsewhere, to detect a truncated journal. */
  readonly head: JournalHead;
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
  /** The records that the sink stores, newest first, as `readJournal` yields them. */
  records(options?: ReadJournalOptions): AsyncGenerator<JournalRecord>;
  /**
   * Writes the waiting records. Rejects if the sink cannot be opened or written: call it at the
   * start to detect that before the first call.
   */
  flush(): Promise<void>;
  /** Writes the waiting records and the end, and closes the sink. */
  close(): Promise<void>;
}

const ACTION = "make a journal";

const CHECKS = {
  sink: check.anyValue as check.Check<JournalSink>,
  arguments: check.oneOf<JournalDetail>(["none", "digest", "redacted", "full"]),
  onFailure: check.oneOf<JournalOptions["onFailure"]>(["drop-and-count", "refuse-calls"]),
  secrets: check.checkTexts,
  key: check.checkWord,
  flushMs: check.numberFrom(0, 60_000),
  maxBuffered: check.numberFrom(1),
  clock: check.anyValue as check.Check<check.Clock>,
} satisfies { readonly [Field in keyof JournalOptions]-?: check.Check };

const DEFAULTS = {
  arguments: "digest" as JournalDetail,
  secrets: [] as readonly string[],
  flushMs: 100,
  maxBuffered: 16_777_216,
  clock: check.systemClock,
};

type Settings = typeof DEFAULTS & Pick<JournalOptions, "sink" | "onFailure">;

/** The size of a batch of records, in characters. A larger one would delay other work. */
const BATCH_SIZE = 262_144;
const RETRY_MS = 1_000;
const CLOSE_MS = 10_000;
const UNWRITABLE = "the journal cannot be written now";
/** The size that each record counts in addition to its values, in characters. */
const WEIGHT = 512;

/**
 * Creates a layer that records every call of a dispatcher, including calls of unknown and hidden
 * tools. Stage `call`. Metadata, progress, output and answers are never recorded.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { journal, jsonLines } from "@plue/tools/journal";
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 *
 * const file = `${mkdtempSync(`${tmpdir()}/journal-`)}/calls.jsonl`;
 * const records = journal({ sink: jsonLines(file), onFailure: "refuse-calls" });
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { layers: [records] });
 * await dispatcher.dispatch({ name: "ping", callId: "c1" }, { principal: "ann" });
 * await records.close();
 * const { value: call } = await records.records({ callId: "c1" }).next();
 * assert.deepEqual([call?.tool, call?.principal, call?.outcome], ["ping", "ann", "ok"]);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function journal(options: JournalOptions): Journal {
  const { key, ...read } = check.readFields(ACTION, options, CHECKS);
  const { sink, onFailure } = read;
  if (!check.isObject(sink) || onFailure === undefined) {
    fail(ACTION, "sink and onFailure are required");
  }
  check.checkPort(ACTION, "sink", sink, ["append", "pages"]);
  return new CallJournal({ ...DEFAULTS, ...read, sink, onFailure }, hashWith(key));
}

interface RunningCall {
  readonly reader: check.JsonReader;
  readonly args: unknown;
  attempts: number;
}

class CallJournal implements Journal {
  readonly name = "journal";
  readonly stage = "call";
  readonly #settings: Settings;
  readonly #hash: Hash;
  readonly #recordOf: (call: EndedCall) => object;
  readonly #running: Map<Call, RunningCall> = new Map();
  readonly #waiting: EndedCall[] = [];
  #weight = 0;
  #dropped = 0;
  /** The number of dropped calls that no record has reported. */
  #uncounted = 0;
  #disarm: (() => void) | undefined;
  /** The last write. On Workers, it rejects if its request has ended. */
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** True once the final record is made, which counts the running calls. */
  #hasEnd = false;
  #failure: Error | undefined;
  /** The last call: its dispatcher receives the errors of the sink. */
  #last: Pick<Call, "report"> | undefined;
  #stored = NO_RECORD;
  /** The end of the chain, and its lines that are not stored yet. */
  #head = NO_RECORD;
  #lines: string[] = [];

  get #hasWork(): boolean {
    return this.#waiting.length + this.#lines.length + this.#uncounted > 0;
  }

  constructor(settings: Settings, hash: Hash) {
    this.#settings = settings;
    this.#hash = hash;
    this.#recordOf = recordMaker(settings, hash);
  }

  /** Applies only while the sink fails, so that other calls cost no promise. */
  readonly when = (): boolean => this.#failure !== undefined || this.#isClosed;

  for(): ReturnType<NonNullable<Layer["for"]>> {
    if (this.#settings.onFailure === "drop-and-count") return undefined;
    return (call) => call.fail("unavailable", UNWRITABLE);
  }

  observe(tool: Tool): ReturnType<NonNullable<Layer["observe"]>> {
    return {
      toolStarted: (call) => {
        const run = this.#running.get(call);
        // The tool may change its arguments, so they are copied before it runs.
        if (run === undefined) this.#running.set(call, this.#read(call.plainArguments, 1));
        else run.attempts++;
      },
      ended: (call, result) => {
        const { request, options, callId, plainArguments } = call;
        const run = this.#running.get(call) ??
          this.#read(plainArguments ?? request.arguments ?? {}, 0);
        this.#running.delete(call);
        this.#last = call;
        this.#add(options, callId, tool.id, tool, run, result, notesOf(call));
      },
    };
  }

  readonly unresolved: NonNullable<Layer["unresolved"]> = (call, options, result, report, from) => {
    const read = (field: keyof typeof call): unknown => attemptOr(undefined, () => call[field]);
    const [name = "", callId] = [read("name"), read("callId")]
      .map((text) => check.isWord(text) ? text.slice(0, 256) : undefined);
    const hidden = attemptOr(undefined, () => from?.explain(name).steps.find((one) => !one.passed));
    this.#last = { report };
    const run = this.#read(read("arguments"), 0);
    this.#add(
      options,
      callId,
      name,
      undefined,
      run,
      result,
      hidden && [{
        by: "criterion",
        name: hidden.name ? `${hidden.step} ${hidden.name}` : hidden.step,
        verdict: "deny",
        reason: hidden.reason,
      }],
    );
  };

  /** Copies arguments that are a JSON object: only names of members identify secrets. */
  #read(args: unknown, attempts: number): RunningCall {
    const reader = new check.JsonReader({});
    return { reader, args: check.isObject(args) ? this.#copy(reader, args) : undefined, attempts };
  }

  /** Copies JSON. Returns `undefined` for other values, and if values are not recorded. */
  #copy(reader: check.JsonReader, value: unknown): unknown {
    if (this.#settings.arguments === "none") return undefined;
    try {
      const copy = reader.read(value);
      return copy === check.STOPPED ? undefined : copy;
    } catch {
      return undefined;
    }
  }

  #add(
    { principal, sessionId: session, trace }: Call["options"],
    callId: string | undefined,
    name: string,
    tool: Tool | undefined,
    { reader, args, attempts }: RunningCall,
    result: ToolResult,
    notes: readonly CallNote[] | undefined,
  ): void {
    const { maxBuffered, clock, flushMs } = this.#settings;
    const failure = result.ok ? undefined : result;
    const content = result.ok ? this.#copy(reader, result.content) : undefined;
    const weight = WEIGHT + reader.bytes + (failure?.error.message.length ?? 0);
    if (this.#isClosed) return this.#drop("the journal is closed");
    this.#arm(flushMs);
    if (this.#weight + weight > maxBuffered) return this.#drop("the buffer of the journal is full");
    this.#weight += weight;
    const outline = {
      time: clock.timestamp(),
      callId,
      principal,
      session,
      tool: name,
      outcome: failure?.error.code ?? "ok",
      ran: failure?.error.ran,
      replayed: result.replayed,
      durationMs: result.durationMs,
      attempts,
    };
    const traceParent = trace?.headers?.get("traceparent");
    this.#waiting.push({ outline, tool, args, content, failure, notes, traceParent, weight });
  }

  #drop(what: string): void {
    this.#dropped++;
    if (!this.#hasEnd) this.#uncounted++;
    this.#setFailure(new RangeError(`Cannot record a call: ${what}`));
  }

  #arm(ms: number): void {
    if (this.#disarm) return;
    this.#disarm = this.#settings.clock.setTimeout(() => void this.flush().catch(() => {}), ms);
  }

  /** Reports the first failure, until the sink works again. A sink may reject with any value. */
  #setFailure(cause: unknown): void {
    if (this.#failure) return;
    this.#failure = cause instanceof Error ? cause : new Error(UNWRITABLE, { cause });
    this.#last?.report("internal", this.#failure);
  }

  async flush(): Promise<void> {
    const write = () => this.#write();
    try {
      await (this.#writing = this.#writing.then(write, write));
    } catch (error) {
      this.#setFailure(error);
      throw error;
    } finally {
      if (this.#hasWork && !this.#isClosed) this.#arm(this.#failure ? RETRY_MS : 0);
    }
  }

  async #write(): Promise<void> {
    this.#disarm?.();
    this.#disarm = undefined;
    if (this.#head === NO_RECORD) await this.#open();
    while (this.#hasWork) {
      if (this.#lines.length === 0) this.#makeLines();
      await this.#settings.sink.append(this.#lines);
      this.#lines = [];
      this.#stored = this.#head;
    }
    this.#failure = undefined;
  }

  async #open(): Promise<void> {
    const { sink } = this.#settings;
    await sink.open?.();
    for await (const line of linesOf(sink)) {
      this.#head = headOf(line, this.#hash) ??
        fail("continue the journal", "the last record or the key was changed");
      break;
    }
    this.#line({ kind: "begin" });
  }

  #makeLines(): void {
    let size = 0;
    const last = this.#waiting.findIndex(({ weight }) => (size += weight) > BATCH_SIZE);
    for (const call of this.#waiting.splice(0, last < 0 ? BATCH_SIZE : last + 1)) {
      this.#weight -= call.weight;
      this.#line(attemptOr(call.outline, () => this.#recordOf(call)), call.outline);
    }
    if (this.#uncounted > 0) this.#line({ kind: "dropped", count: this.#uncounted });
    this.#uncounted = 0;
  }

  /** Adds a line to the chain: with other fields if it is too long for the sink. */
  #line(fields: object, shorter: object = fields): void {
    const { clock, sink } = this.#settings;
    const time = clock.timestamp();
    let next = nextLine(this.#head, { time, ...fields }, this.#hash);
    if (next.line.length > (sink.maxLineLength ?? Infinity)) {
      next = nextLine(this.#head, { time, ...shorter }, this.#hash);
    }
    this.#head = next.head;
    this.#lines.push(next.line);
  }

  stats(): JournalStats {
    return {
      head: this.#stored,
      waiting: this.#waiting.length,
      dropped: this.#dropped,
      ...(this.#failure && { failure: this.#failure.message }),
    };
  }

  records(options?: ReadJournalOptions): AsyncGenerator<JournalRecord> {
    return readJournal(this.#settings.sink, options);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { clock, sink } = this.#settings;
    const end = async (): Promise<void> => {
      await this.flush();
      this.#hasEnd = true;
      this.#uncounted += this.#running.size;
      this.#makeLines();
      this.#line({ kind: "end" });
      await this.#write();
    };
    try {
      if (await check.within(clock, CLOSE_MS, end()) === check.TIME_OVER) {
        throw new RangeError(`Cannot close the journal: its sink exceeded ${CLOSE_MS} ms`);
      }
    } finally {
      await sink.close?.();
    }
  }

  readonly [Symbol.asyncDispose] = (): Promise<void> => this.close();
}
