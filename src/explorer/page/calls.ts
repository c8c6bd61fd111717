/** The calls of this page: running, suspended and completed. */

import { signal } from "@preact/signals";
import type { RunningTask, TaskQueueState, TaskState } from "../../execute/durable/mod.ts";
import type { ProgramCallState } from "../../adapters/code/code_run.ts";
import type { JournalRecord } from "../../adapters/journal/mod.ts";
import type { DispatcherMetrics, ToolProgress } from "../../execute/mod.ts";
import { type Answer, isObject, type Issue, type Question } from "../../tool/mod.ts";
import { ApiError, ask, eventsOf, newCallId, send, type StreamEvent } from "./api.ts";

export interface PageCall {
  readonly callId: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly startedAt: number;
  readonly status: "running" | "waiting" | "ok" | "failed";
  readonly progress?: ToolProgress;
  /** Streamed output and metadata, in order. The oldest values are evicted. */
  readonly streamed: readonly { readonly type: string; readonly value: unknown }[];
  readonly dropped: number;
  /** The calls of a program, by their numbers. */
  readonly inner: readonly ProgramCallState[];
  readonly questions?: readonly Question[];
  readonly ticket?: string;
  readonly task?: string;
  readonly content?: unknown;
  readonly truncated?: boolean;
  readonly failure?: {
    readonly code: string;
    readonly message: string;
    readonly issues: readonly Issue[];
  };
  readonly durationMs?: number;
}

/** The calls, newest first. */
export const calls = signal<readonly PageCall[]>([]);

const MAX_CALLS = 100;
const MAX_STREAMED = 500;

const readers = new Map<string, AbortController>();

export function lastCallOf(tool: string): PageCall | undefined {
  return calls.value.find((call) => call.tool === tool);
}

function change(
  callId: string,
  edit: Partial<PageCall> | ((call: PageCall) => Partial<PageCall>),
): void {
  calls.value = calls.value.map((call) =>
    call.callId !== callId ? call : { ...call, ...(typeof edit === "function" ? edit(call) : edit) }
  );
}

export function isOpen({ status }: PageCall): boolean {
  return status === "running" || status === "waiting";
}

function add(call: Pick<PageCall, "callId" | "tool" | "arguments" | "startedAt" | "task">): void {
  const begun: PageCall = { ...call, status: "running", streamed: [], dropped: 0, inner: [] };
  calls.value = [begun, ...calls.value].filter((one, index) => index < MAX_CALLS || isOpen(one));
}

/** @param isTask True to let the call outlive this page, if the service has tasks. */
export async function run(tool: string, input: unknown, isTask = false): Promise<void> {
  const callId = newCallId();
  add({ callId, tool, arguments: input, startedAt: Date.now() });
  const path = `tools/${encodeURIComponent(tool)}/execute`;
  await follow(callId, path, { arguments: input, callId }, isTask);
}

export async function answer(
  { callId, ticket, task }: PageCall,
  answers: Readonly<Record<string, Answer>>,
): Promise<void> {
  change(callId, { status: "running" });
  if (task !== undefined) {
    // The task's stream delivers the further states.
    return await orFail(callId, () => send(taskPath(task), { method: "POST", body: { answers } }));
  }
  await follow(callId, `calls/${encodeURIComponent(callId)}`, { ticket, answers });
}

/** Aborts a running call or a task. Any other suspended call is only removed from this page. */
export async function abort({ callId, status, task }: PageCall): Promise<void> {
  if (task !== undefined) {
    return await orFail(callId, () => send(taskPath(task), { method: "DELETE" }));
  }
  if (status !== "running") return fail(callId, "aborted", "The call was not continued");
  try {
    await send(`executions/${encodeURIComponent(callId)}/abort`, { method: "POST" });
  } catch {
    // The call has ended, or another process runs it and notices the closed connection.
    readers.get(callId)?.abort();
  }
}

/** Shows the tasks that this caller started elsewhere, and follows the unfinished tasks. */
export async function findTasks(): Promise<void> {
  const { tasks } = await ask<{ readonly tasks: readonly TaskState[] }>("calls");
  for (const task of tasks.toReversed()) show(task);
}

/** Shows one task, which a link names. @throws {ApiError} If the caller has no such task. */
export async function findTask(id: string): Promise<void> {
  show(await ask<TaskState>(taskPath(id)));
}

function show({ id, tool, createdAt }: TaskState): void {
  if (calls.value.some((call) => call.task === id)) return;
  add({ callId: id, task: id, tool, arguments: undefined, startedAt: createdAt });
  const reader = new AbortController();
  void orFail(id, () => followTask(id, id, reader.signal));
}

async function followTask(callId: string, task: string, signal: AbortSignal): Promise<void> {
  const response = await send(taskPath(task), { accept: "text/event-stream", signal });
  for await (const events of eventsOf(response)) {
    // Each event contains the whole task.
    const data = events.findLast(({ event }) => event === "task")?.data;
    if (!isObject(data)) continue;
    const { status, progress, metadata = [], questions, result } = data as unknown as TaskState;
    addProgramCalls(callId, metadata);
    if (result !== undefined) return end(callId, result);
    change(callId, {
      ...(progress && { progress }),
      ...(questions && { questions }),
      status: status === "input_required" ? "waiting" : "running",
    });
  }
  fail(callId, "network", "The connection ended before the task did");
}

function taskPath(task: string): string {
  return `calls/${encodeURIComponent(task)}`;
}

async function follow(callId: string, path: string, body: unknown, isTask = false): Promise<void> {
  const reader = new AbortController();
  readers.set(callId, reader);
  const { signal } = reader;
  await orFail(callId, async () => {
    const response = await send(path, {
      ...{ method: "POST", body, accept: "text/event-stream", isTask, signal },
    });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      const answered: unknown = await response.json();
      const task = isObject(answered) && answered["ok"] === undefined ? answered["id"] : undefined;
      if (response.status !== 202 || typeof task !== "string") return end(callId, answered);
      change(callId, { task });
      return await followTask(callId, task, signal);
    }
    for await (const events of eventsOf(response)) {
      addEvents(callId, events);
      const last = events.find(({ event }) => event === "result");
      if (last !== undefined) return end(callId, isObject(last.data) && last.data["result"]);
      // Lets the browser render and handle events between two reads of a fast stream.
      await new Promise((resolve) => setTimeout(resolve));
    }
    fail(callId, "network", "The connection ended before the call did");
  }, signal).finally(() => readers.delete(callId));
}

/** Runs a function for a call; if it throws, the call fails. */
async function orFail(
  callId: string,
  work: () => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof ApiError) fail(callId, error.code, error.message, error.issues);
    else if (signal?.aborted === true) fail(callId, "aborted", "The call was aborted");
    else fail(callId, "network", `The service cannot be reached: ${String(error)}`);
  }
}

/** Stores the events of one chunk in a single update, because each update renders. */
function addEvents(callId: string, events: readonly StreamEvent[]): void {
  const news = events.flatMap(({ event: type, data }) => isObject(data) ? [{ type, data }] : []);
  const emitted = news.filter(({ type }) => type === "output" || type === "metadata")
    .map(({ type, data }) => ({ type, value: data["value"] }));
  addProgramCalls(callId, emitted.map(({ value }) => value));
  const added = emitted.filter(({ value }) => !isProgramCall(value));
  const step = news.findLast(({ type }) => type === "progress")?.data["progress"];
  if (added.length === 0 && step === undefined) return;
  change(callId, ({ streamed, dropped }) => {
    const all = [...streamed, ...added];
    const over = Math.max(0, all.length - MAX_STREAMED);
    return {
      streamed: all.slice(over),
      dropped: dropped + over,
      ...(step === undefined ? {} : { progress: step as ToolProgress }),
    };
  });
}

const isProgramCall = (value: unknown): value is ProgramCallState =>
  isObject(value) && value["type"] === "call" && Number.isInteger(value["index"]);

/** Adds the states of a program's calls. A call that a resumed program repeats keeps its times. */
function addProgramCalls(callId: string, values: readonly unknown[]): void {
  const news = values.filter(isProgramCall);
  if (news.length === 0) return;
  change(callId, ({ inner }) => {
    const all = new Map(inner.map((state) => [state.index, state]));
    for (const state of news) {
      const { outcome: _, ...before } = all.get(state.index) ?? {};
      all.set(state.index, { ...before, ...state });
    }
    return { inner: [...all.values()].slice(0, MAX_STREAMED) };
  });
}

function end(callId: string, result: unknown): void {
  if (!isObject(result)) {
    return fail(callId, "network", "The response of the service has no result");
  }
  const { durationMs, questions, ticket, ok, content, truncated } = result;
  const timed = typeof durationMs === "number" ? { durationMs } : {};
  if (Array.isArray(questions) && typeof ticket === "string") {
    return change(callId, { ...timed, status: "waiting", questions, ticket });
  }
  if (ok === true) {
    return change(callId, { ...timed, status: "ok", content, truncated: truncated === true });
  }
  const { code, message, issues } = isObject(result["error"]) ? result["error"] : {};
  fail(callId, String(code), String(message), Array.isArray(issues) ? issues : []);
  change(callId, timed);
}

function fail(callId: string, code: string, message: string, issues: readonly Issue[] = []): void {
  change(callId, ({ startedAt }) => ({
    durationMs: Date.now() - startedAt,
    status: "failed",
    failure: { code, message, issues },
  }));
}

/** The response of `GET /metrics`. Only callers with access to explanations get all figures. */
type Figures =
  & Omit<DispatcherMetrics, "queued" | "unknownTool">
  & Partial<Pick<DispatcherMetrics, "queued">>
  & {
    /** True if the service has a journal that this caller may read. */
    readonly journal?: true;
    readonly queue?: Omit<TaskQueueState, "running"> & {
      readonly running: readonly Omit<RunningTask, "id">[];
    };
  };

/** The last measurements, oldest first. */
export const samples = signal<readonly Figures[]>([]);
const MAX_SAMPLES = 60;

export async function measure(): Promise<void> {
  const figures = await ask<Figures>("metrics", { accept: "application/json" });
  samples.value = [...samples.value, figures].slice(-MAX_SAMPLES);
}

/** The wanted values of records; "" for any. */
export type WantedRecords = Record<"tool" | "outcome" | "principal", string>;

/** Reads the newest records of the journal, if the service has one for this caller. */
export async function readRecords(
  hasJournal: boolean,
  wanted: WantedRecords,
): Promise<readonly JournalRecord[]> {
  if (!hasJournal) return [];
  const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
  const { records } = await ask<{ readonly records: readonly JournalRecord[] }>(`journal?${query}`);
  return records;
}
