/**
 * The engine of tasks, in this process and over NATS. It claims the record of a task, renews the
 * lease while the tool runs, and stores the result.
 */

import {
  type Clock,
  type HookLog,
  type ToolFailure,
  ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import { failure } from "../failures.ts";
import type { DispatchContext, ToolProgress } from "../request.ts";
import type { Claim, Lease, LeasedRecord, LeasedRecords } from "./records.ts";

export interface RunRecord extends LeasedRecord {
  readonly attempts: number;
  /** The earliest start of the next run, in milliseconds since 1970; absent during a run. */
  readonly runAt?: number | undefined;
  readonly result?: ToolResult;
  /** The questions of the task. A task with questions waits for answers, not for a process. */
  readonly questions?: unknown;
}

export interface ToolProcess {
  /** Resolves with the result. Never rejects. */
  readonly result: Promise<ToolResult>;
  abort(): void;
}

export interface TaskEngineSettings<R extends RunRecord> {
  readonly records: LeasedRecords<R>;
  readonly maxAttempts: number;
  readonly log: HookLog;
  /** The time between attempts to store a result, in milliseconds. */
  readonly retryMs: number;
  /** Returns true to give up storing a result after this number of attempts. */
  isOver(tries: number): boolean;
  /** Returns true if the store would reject the same write again. */
  isRefused?(error: unknown): boolean;
  end(record: R, result: ToolResult): R;
}

export class TaskEngine<R extends RunRecord> {
  readonly #settings: TaskEngineSettings<R>;

  constructor(settings: TaskEngineSettings<R>) {
    this.#settings = settings;
  }

  isLost(record: R): boolean {
    return record.holder !== "" && record.result === undefined &&
      !this.#settings.records.isHeld(record);
  }

  /** Returns the record, with a failure if its process has died and the tool must not run again. */
  judge(record: R, tool: string, idempotent: boolean): R {
    const { maxAttempts, end } = this.#settings;
    const mayRunAgain = idempotent && record.attempts < maxAttempts;
    if (!this.isLost(record) || mayRunAgain) return record;
    const why = idempotent
      ? `${maxAttempts} processes have ended while they ran it`
      : "its process ended during the call; the tool may have run";
    return end(
      record,
      failure("unavailable", tool, why, { retryable: idempotent, ran: "unknown" }),
    );
  }

  /**
   * Claims a task that has not ended and that no other process runs.
   *
   * @param first The record to store if the task has none.
   * @returns The lease, if the task was claimed, and the record. `died` is true if this claim has
   * ended the task, because its process has died.
   */
  async claim(
    key: string,
    tool: string,
    idempotent: boolean,
    first?: R,
  ): Promise<Claim<R> & { readonly died: boolean }> {
    const { records } = this.#settings;
    let died = false;
    const claim = await records.claim(key, (before = first, begun) => {
      died = false;
      if (before === undefined || records.isHeld(before)) return undefined;
      if (before.result !== undefined || before.questions !== undefined) return undefined;
      if ((before.runAt ?? 0) > records.now()) return undefined;
      const judged = this.judge(before, tool, idempotent);
      died = judged !== before;
      if (died) return judged;
      return { ...before, runAt: undefined, ...begun, attempts: before.attempts + 1 };
    }, first !== undefined);
    return { ...claim, died };
  }

  /**
   * Renews a lease until its tool has ended, and stores the result. Tries again after an error, and
   * stores a failure if the store rejects the result.
   *
   * @param end Returns the record with the result.
   * @param extend Called at each renewal, and before each further attempt to store the result.
   * @returns False if another process has the lease.
   * @throws {Error} If neither the result nor a failure can be stored.
   */
  async keep(
    lease: Lease<R>,
    tool: string,
    { result, abort }: ToolProcess,
    end: (record: R, result: ToolResult) => R,
    extend: () => void = () => {},
  ): Promise<boolean> {
    const { records: { clock }, log, retryMs, isOver, isRefused } = this.#settings;
    lease.renew(abort, log, extend);
    try {
      const outcome = await result;
      let stored = outcome;
      for (let tries = 1;; tries++) {
        try {
          return await lease.change((record) => end(record, stored));
        } catch (error) {
          if (isOver(tries)) throw error;
          log(error);
          const replaced = error instanceof RangeError
            ? failure(
              "output_too_large",
              tool,
              `its result is not stored (${error.message}); it has run`,
              { ran: "yes" },
            )
            : isRefused?.(error)
            ? notStored(tool, "it has run", "yes")
            : undefined;
          if (replaced === undefined) {
            extend();
            await new Promise<void>((resolve) => void clock.setTimeout(resolve, retryMs));
          } else if (stored === outcome) stored = replaced;
          else throw error;
        }
      }
    } finally {
      await lease.end();
    }
  }
}

/** The failure of a call whose result cannot be stored. A repetition could run the tool twice. */
export function notStored(tool: string, what: string, ran: ToolRun): ToolFailure {
  return failure("unavailable", tool, `its result cannot be stored; ${what}`, { ran });
}

interface Emitted {
  readonly progress?: ToolProgress;
  readonly metadata?: readonly unknown[];
}

export interface Run extends ToolProcess {
  result: Promise<ToolResult>;
  /** The values to store: the last progress, and the last metadata about the calls of a program. */
  emitted: Emitted | undefined;
  changed: () => void;
  /** Detaches the call from the caller's request. */
  detach(): void;
}

/** The maximum length of the metadata in a record, in characters of JSON. */
const MAX_METADATA = 16_384;

export function beginRun(
  context: DispatchContext,
  dispatch: (context: DispatchContext) => Promise<ToolResult>,
): Run {
  const controller = new AbortController();
  const { signal } = context;
  const caller = typeof signal === "function" ? signal() : signal;
  const abort = (): void => controller.abort(caller?.reason);
  let isAttached = true;
  let cancel = (): void => {};
  // On Workers, a request that cancels a task must not run code of the task's first request.
  void new Promise<void>((resolve) => cancel = resolve).then(() =>
    controller.abort(new DOMException("The task was cancelled", "AbortError"))
  );
  const run: Run = {
    abort: cancel,
    emitted: undefined,
    changed: () => {},
    result: Promise.resolve(ToolResult.error("The call has not begun")),
    detach() {
      isAttached = false;
      caller?.removeEventListener("abort", abort);
    },
  };
  if (caller?.aborted) abort();
  caller?.addEventListener("abort", abort, { once: true });
  const emit = (emitted: Emitted): void => {
    run.emitted = { ...run.emitted, ...emitted };
    run.changed();
  };
  run.result = dispatch({
    ...context,
    signal: controller.signal,
    progress(progress) {
      emit({ progress });
      if (isAttached) context.progress?.(progress);
    },
    metadata(value) {
      if (isAttached) context.metadata?.(value);
      if (Object(value).type !== "call") return;
      const metadata = [...run.emitted?.metadata ?? [], value];
      while (JSON.stringify(metadata).length > MAX_METADATA) metadata.shift();
      emit({ metadata });
    },
    output: (value, bytes) => isAttached ? context.output?.(value, bytes) : undefined,
  });
  return run;
}

/** Stores the progress and the metadata of a run until the run has ended. */
export function storeProgress<R extends RunRecord & Emitted>(
  lease: Lease<R>,
  run: Run,
  { clock, pollMs, log }: { readonly clock: Clock; readonly pollMs: number; readonly log: HookLog },
): void {
  let writing: Promise<unknown> | undefined;
  let isDirty = false;
  let disarm = (): void => {};
  const flush = (): void => {
    isDirty = writing !== undefined;
    // Writes are serialized; the next write contains the latest progress.
    writing ??= lease.change((record) => ({
      ...record,
      updatedAt: clock.timestamp(),
      ...run.emitted,
    })).catch(log).then(() => {
      if (run.changed !== flush) return;
      // Waits for the polling interval: clients do not read sooner, and a record may be large.
      disarm = clock.setTimeout(() => {
        writing = undefined;
        if (isDirty) flush();
      }, pollMs);
    });
  };
  run.changed = flush;
  if (run.emitted !== undefined) flush();
  void run.result.then(() => {
    run.changed = () => {};
    disarm();
  });
}
