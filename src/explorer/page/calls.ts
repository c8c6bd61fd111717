/**
 * The calls of this page: what runs, what waits for an answer, and what has ended.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { DispatcherMetrics } from "../../execute/mod.ts";
import { isObject, type Issue, type JsonSchema } from "../../tool/mod.ts";
import {
  ApiError,
  ask,
  eventsOf,
  newCallId,
  type RequestOptions,
  send,
  type StreamEvent,
} from "./api.ts";

/** Something that a call wants to know before it goes on. */
export interface Question {
  readonly key: string;
  readonly kind: "input" | "approval" | "authorization";
  readonly message: string;
  readonly schema?: JsonSchema;
  readonly url?: string;
  readonly arguments?: unknown;
  readonly issues?: readonly Issue[];
}

/** The answer to a question. */
export type Answer =
  | { readonly action: "accept"; readonly content?: unknown }
  | { readonly action: "decline" | "cancel" };

/** What went wrong. */
export interface CallFailure {
  readonly code: string;
  readonly message: string;
  readonly issues: readonly Issue[];
}

/** A call of this page, or a task of its caller. */
export interface PageCall {
  readonly callId: string;
  /** The task that the call became, if it is one. */
  readonly task?: string;
  readonly tool: string;
  /** Absent for a task that another page or program began. */
  readonly arguments?: unknown;
  readonly startedAt: number;
  readonly status: "running" | "waiting" | "ok" | "failed";
  readonly progress?: { readonly done: number; readonly total?: number; readonly message?: string };
  /** What was streamed: output and metadata, in order. The oldest go first. */
  readonly streamed: readonly { readonly type: string; readonly value: unknown }[];
  /** How many streamed values are not kept any longer. */
  readonly dropped: number;
  readonly questions?: readonly Question[];
  readonly ticket?: string;
  readonly content?: unknown;
  readonly truncated?: boolean;
  readonly failure?: CallFailure;
  readonly durationMs?: number;
}

/** The calls, newest first. */
export const calls = signal<readonly PageCall[]>([]);

const MAX_CALLS = 100;
const MAX_STREAMED = 500;

/** How to stop reading each call that runs. */
const readers = new Map<string, AbortController>();

/** The newest call of a tool. */
export function lastCallOf(tool: string): PageCall | undefined {
  return calls.value.find((call) => call.tool === tool && Object.hasOwn(call, "arguments"));
}

/** Whether a call has not ended. */
export function isOpen({ status }: PageCall): boolean {
  return status === "running" || status === "waiting";
}

function change(callId: string, edit: (call: PageCall) => Partial<PageCall>): void {
  calls.value = calls.value.map((call) => {
    if (call.callId !== callId) return call;
    return { ...call, ...edit(call) };
  });
}

/** Runs a tool. */
export async function run(tool: string, input: unknown): Promise<void> {
  const callId = newCallId();
  const call: PageCall = {
    callId,
    tool,
    arguments: input,
    startedAt: Date.now(),
    status: "running",
    streamed: [],
    dropped: 0,
  };
  calls.value = [call, ...calls.value].filter((one, index) => index < MAX_CALLS || isOpen(one));
  const path = `tools/${encodeURIComponent(tool)}/execute`;
  await follow(callId, path, { arguments: input, callId });
}

/** Continues a call that waits for answers. */
export async function answer(
  { callId, task, ticket }: PageCall,
  answers: Readonly<Record<string, Answer>>,
): Promise<void> {
  change(callId, () => ({ status: "running" }));
  if (task === undefined) {
    return await follow(callId, `calls/${encodeURIComponent(callId)}`, { ticket, answers });
  }
  await changeTask(callId, task, { method: "POST", body: { answers } });
}

/** Aborts a call that runs, or a task. Another call that waits is only forgotten here. */
export async function abort({ callId, task, status }: PageCall): Promise<void> {
  if (task !== undefined) return await changeTask(callId, task, { method: "DELETE" });
  if (status !== "running") {
    return change(callId, () => ({
      status: "failed",
      failure: { code: "aborted", message: "The call was not continued", issues: [] },
    }));
  }
  try {
    await send(`executions/${encodeURIComponent(callId)}/abort`, { method: "POST" });
  } catch {
    // The call has ended, or runs in another process, which notices that its client leaves.
    readers.get(callId)?.abort();
  }
}

async function follow(callId: string, path: string, body: unknown): Promise<void> {
  const reader = new AbortController();
  readers.set(callId, reader);
  try {
    const response = await send(path, {
      method: "POST",
      body,
      accept: "text/event-stream",
      signal: reader.signal,
    });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      const answer: unknown = await response.json();
      return isTask(answer) ? await followTask(callId, answer) : end(callId, answer);
    }
    for await (const events of eventsOf(response)) {
      note(callId, events);
      const last = events.find(({ event }) => event === "result");
      if (last !== undefined) return end(callId, isObject(last.data) && last.data["result"]);
      // The browser draws, and hears clicks, between two reads of a quick stream.
      await new Promise((resolve) => setTimeout(resolve));
    }
    fail(callId, "network", "The connection ended before the call did");
  } catch (error) {
    if (error instanceof ApiError) {
      return fail(callId, error.code, error.message, error);
    }
    if (reader.signal.aborted) {
      return fail(callId, "aborted", "The call was aborted");
    }
    fail(callId, "network", `The service cannot be reached: ${String(error)}`);
  } finally {
    readers.delete(callId);
  }
}

/** A task, as the service tells it. */
interface TaskState extends Pick<PageCall, "progress" | "questions"> {
  readonly id: string;
  readonly callId: string;
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  readonly tool: string;
  readonly createdAt: number;
  readonly pollMs: number;
  readonly result?: unknown;
}

function isTask(answer: unknown): answer is TaskState {
  return isObject(answer) && typeof answer["id"] === "string" &&
    typeof answer["createdAt"] === "number";
}

/** The tasks whose events are read. What other requests tell of them may be older. */
const followed = new Set<string>();

/** Follows a task until it has ended. The task goes on while the service cannot be reached. */
async function followTask(callId: string, task: TaskState): Promise<void> {
  const { id, pollMs } = task;
  noteTask(callId, task);
  followed.add(id);
  try {
    for (;;) {
      try {
        const response = await send(placeOf(id), { accept: "text/event-stream" });
        for await (const events of eventsOf(response)) {
          for (const { data } of events) if (isTask(data)) noteTask(callId, data);
        }
      } catch (error) {
        if (error instanceof ApiError) return fail(callId, error.code, error.message, error);
      }
      const call = calls.value.find((one) => one.callId === callId);
      if (call === undefined || !isOpen(call)) return;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  } finally {
    followed.delete(id);
  }
}

function placeOf(task: string): string {
  return `calls/${encodeURIComponent(task)}`;
}

/** Answers or cancels a task. */
async function changeTask(callId: string, id: string, options: RequestOptions): Promise<void> {
  try {
    await send(placeOf(id), options);
    if (!followed.has(id)) await loadTasks();
  } catch (error) {
    if (error instanceof ApiError) return fail(callId, error.code, error.message, error);
    fail(callId, "network", `The service cannot be reached: ${String(error)}`);
  }
}

/** Adds the caller's tasks, also those that were not begun here, and notes how they are. */
export async function loadTasks(): Promise<void> {
  const { tasks } = await ask<{ readonly tasks: readonly TaskState[] }>("calls");
  for (const task of tasks) {
    const { id, tool, createdAt: startedAt } = task;
    if (followed.has(id)) continue;
    const known = calls.value.find((call) => call.task === id);
    if (known === undefined) {
      const call = { callId: `task-${id}`, task: id, tool, startedAt };
      calls.value = [...calls.value, { ...call, status: "running", streamed: [], dropped: 0 }];
    }
    if (known === undefined || isOpen(known)) noteTask(known?.callId ?? `task-${id}`, task);
  }
}

/** Notes how a task is. */
function noteTask(callId: string, task: TaskState): void {
  const { id, status, progress, questions = [], result } = task;
  change(callId, (call) => ({
    task: id,
    status: status === "input_required" ? "waiting" : "running",
    // The same questions keep what was filled in.
    ...(JSON.stringify(call.questions) === JSON.stringify(questions) ? {} : { questions }),
    ...(progress === undefined ? {} : { progress }),
  }));
  if (result !== undefined) end(callId, result);
}

/** Notes what came together, in one change: each change is a rendering. */
function note(callId: string, events: readonly StreamEvent[]): void {
  const news = events.flatMap(({ event: type, data }) => isObject(data) ? [{ type, data }] : []);
  const added = news.filter(({ type }) => type === "output" || type === "metadata")
    .map(({ type, data }) => ({ type, value: data["value"] }));
  const step = news.findLast(({ type }) => type === "progress")?.data["progress"];
  if (added.length === 0 && step === undefined) return;
  change(callId, ({ streamed, dropped }) => {
    const all = [...streamed, ...added];
    const over = Math.max(0, all.length - MAX_STREAMED);
    return {
      streamed: all.slice(over),
      dropped: dropped + over,
      ...(step === undefined ? {} : { progress: step as NonNullable<PageCall["progress"]> }),
    };
  });
}

/** Notes a result: of a stream, or the body of an answer. */
function end(callId: string, result: unknown): void {
  if (!isObject(result)) {
    return fail(callId, "network", "The service answered no result");
  }
  const durationMs = typeof result["durationMs"] === "number" ? result["durationMs"] : undefined;
  const timed = durationMs === undefined ? {} : { durationMs };
  const { questions, ticket } = result;
  if (Array.isArray(questions) && typeof ticket === "string") {
    return change(callId, () => ({
      ...timed,
      status: "waiting",
      questions: questions as readonly Question[],
      ticket,
    }));
  }
  if (result["ok"] === true) {
    return change(callId, () => ({
      ...timed,
      status: "ok",
      content: result["content"],
      ...(result["truncated"] === true ? { truncated: true } : {}),
    }));
  }
  const error = isObject(result["error"]) ? result["error"] : {};
  fail(
    callId,
    String(error["code"]),
    String(error["message"]),
    { issues: Array.isArray(error["issues"]) ? (error["issues"] as readonly Issue[]) : [] },
    timed,
  );
}

function fail(
  callId: string,
  code: string,
  message: string,
  { issues = [] }: { readonly issues?: readonly Issue[] } = {},
  rest: Partial<PageCall> = {},
): void {
  change(callId, ({ startedAt }) => ({
    durationMs: Date.now() - startedAt,
    ...rest,
    status: "failed",
    failure: { code, message, issues },
  }));
}

/** The answer of `GET /metrics`: what belongs to no tool is for callers that may explain. */
export type Figures =
  & Omit<DispatcherMetrics, "queued" | "unknownTool">
  & Partial<Pick<DispatcherMetrics, "queued">>;

/** A measurement, for the charts. */
export interface Sample {
  readonly at: number;
  readonly figures: Figures;
}

/** The last measurements, oldest first. */
export const samples = signal<readonly Sample[]>([]);
const MAX_SAMPLES = 60;

/** Takes a measurement. */
export async function measure(): Promise<void> {
  const figures = await ask<Figures>("metrics", { accept: "application/json" });
  samples.value = [...samples.value, { at: Date.now(), figures }].slice(-MAX_SAMPLES);
}
