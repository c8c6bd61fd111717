/** Calls that outlive their request: calls that wait for answers, and tasks. */

import type { CallTasks, TaskOwner, TaskState } from "../../execute/durable/mod.ts";
import type { DispatchContext, ToolCall } from "../../execute/mod.ts";
import { type Answers, isObject, ToolResult } from "../../tool/mod.ts";
import { atExpiry, followingResponse, frame } from "./event_stream.ts";
import * as execution from "./execute_tool.ts";
import { readValues } from "./pages.ts";
import { type HttpPart, type ToolRequest, withAllLayers } from "./request.ts";
import * as responses from "./responses.ts";
import { json, problemResponse, refuseQuery, RequestError } from "./responses.ts";

/** Runs calls as tasks, for `startTask` of `serveExecution`. Needs the option `tasks` of the server. */
export function runTasks(
  prepared: execution.PreparedCall<ToolCall>,
): Promise<Response> | undefined {
  const { request: { raw: { headers }, server }, dispatcher, call, context } = prepared;
  const { tasks, taskAfterMs: afterMs } = server;
  const { tool } = execution.targetIn(prepared);
  if (tasks === undefined || tool === undefined || tool.execution === "sync") return undefined;
  const isPreferred = prefersAsync(headers);
  const isTask = tool.execution === "task" || isPreferred;
  if (!isTask && (afterMs === undefined || execution.acceptsStream(headers))) return undefined;
  const layered = withAllLayers(dispatcher, "tasks");
  const work = isTask || afterMs === undefined
    ? tasks.start(layered, call, context)
    : tasks.run(layered, call, context, { afterMs });
  return answerTask(tasks, prepared, work, isPreferred);
}

async function answerTask(
  tasks: CallTasks,
  prepared: execution.PreparedCall,
  work: Promise<TaskState | ToolResult>,
  isPreferred: boolean,
): Promise<Response> {
  const { request, running, recorded } = prepared;
  running.whenLong(() => request.keepAlive(work.catch(() => {})));
  const task = await work.finally(() => running.end());
  if (!("id" in task)) return await execution.answerResult(prepared, Promise.resolve(task));
  outlastTask(request, tasks, task);
  recorded.end(ToolResult.ok(null));
  return responses.withHeaders(json(task, 202), [
    ["location", execution.locationOf(request.raw, task.id)],
    ...(isPreferred ? [["preference-applied", "respond-async"] as const] : []),
  ]);
}

function prefersAsync(headers: Headers): boolean {
  const prefer = headers.get("prefer") ?? "";
  return prefer.length < 1_024 && /(^|,)\s*respond-async\s*(,|;|$)/i.test(prefer);
}

/** Keeps a task running after the response to its request, until it has ended or waits for answers. */
export function outlastTask(request: ToolRequest, tasks: CallTasks, { id }: TaskState): void {
  const { caller: { principal } } = request;
  request.outlast(async () => {
    try {
      for await (const { status } of tasks.follow(id, { principal })) {
        if (status !== "working") return;
      }
    } catch {
      // If the store cannot be reached, `tasks` logs the error.
    }
  });
}

/**
 * Makes the handler's part for `/calls`. The routes continue calls that wait for answers, by their
 * tickets, and show, list and cancel the tasks of the server's option `tasks`.
 */
export function serveCalls(): HttpPart {
  return () => ({
    routes: [
      { method: "GET", path: "/calls", answer: listTasks },
      { method: "GET", path: "/calls/:id", answer: showTask },
      { method: "POST", path: "/calls/:id", answer: continueCall },
      { method: "DELETE", path: "/calls/:id", answer: cancelTask },
    ],
  });
}

async function continueCall(request: ToolRequest): Promise<Response> {
  const { raw, server, toolset, param: id, caller: { principal }, dispatcher } = request;
  refuseQuery(raw.url);
  server.requireExecution();
  const { ticket, answers } = readAnswers(await request.readJson());
  if (ticket === undefined) return await answerQuestions(request, answers);
  const { callId = id } = execution.readCallIds({ callId: id }, new Headers());
  const running = server.running.begin({ principal, callId }, raw);
  // The id of the tool is empty, because only the ticket names the tool.
  const recorded = request.beginCall("", callId);
  const context: DispatchContext = { ...request.hostContext(), signal: () => running.signal };
  const call = { ticket, answers, callId };
  const prepared = { request, toolset, dispatcher, call, callId, context, running, recorded };
  return execution.acceptsStream(raw.headers)
    ? execution.streamCall(prepared)
    : await execution.answerResult(prepared, dispatcher.dispatch(call, context));
}

async function answerQuestions(request: ToolRequest, answers: Answers): Promise<Response> {
  const { dispatcher, param: id, server: { tasks } } = request;
  const context = request.hostContext();
  const answering = tasks?.answer(withAllLayers(dispatcher, "tasks"), id, answers, context);
  const answer = await reached(request, answering);
  if (tasks === undefined || answer === undefined) {
    return problemResponse(responses.notFound("a task", id));
  }
  if (!("id" in answer)) return problemResponse(responses.problemOfFailure(answer, id));
  outlastTask(request, tasks, answer);
  return json(answer, 202);
}

async function showTask(request: ToolRequest): Promise<Response> {
  const { raw, param: id, server: { tasks } } = request;
  refuseQuery(raw.url);
  const task = await reached(request, tasks?.get(id, ownerIn(request)));
  if (tasks === undefined || task === undefined) {
    return problemResponse(responses.notFound("a task", id));
  }
  return raw.method !== "HEAD" && execution.acceptsStream(raw.headers)
    ? followTask(request, tasks, task)
    : json(task);
}

/** The stream of a task's states. It ends when the caller's token expires or the tool is hidden. */
function followTask(request: ToolRequest, tasks: CallTasks, { id }: TaskState): Response {
  const { caller: { principal, expiresAt } } = request;
  return followingResponse(request, () => {
    const controller = new AbortController();
    const cancel = (): void => {
      stopWaiting();
      controller.abort();
    };
    const stopWaiting = atExpiry(expiresAt, () => controller.abort());
    const states = tasks.follow(id, { principal, signal: controller.signal });
    let count = 0;
    return {
      async next() {
        const { value } = await states.next();
        const isSeen = await tasks.get(id, { principal, toolset: request.toolsetNow() });
        if (value && isSeen) return frame(count++, "task", value);
        cancel();
        return undefined;
      },
      cancel,
    };
  });
}

async function cancelTask(request: ToolRequest): Promise<Response> {
  const { raw, server, param: id } = request;
  refuseQuery(raw.url);
  server.requireExecution();
  const task = await reached(request, server.tasks?.cancel(id, ownerIn(request)));
  return task === undefined ? problemResponse(responses.notFound("a task", id)) : json(task);
}

/**
 * Lists the caller's tasks, the newest first. The list is empty for callers without a principal: the
 * server cannot distinguish them, so only secret ids keep their tasks apart.
 */
async function listTasks(request: ToolRequest): Promise<Response> {
  const { raw, server: { tasks }, caller: { principal } } = request;
  const options = { ...ownerIn(request), ...readPage(raw.url) };
  const listed = principal === undefined ? undefined : tasks?.list(options);
  return json(await reached(request, listed) ?? { tasks: [] });
}

function readPage(url: string): { readonly limit: number; readonly cursor?: string } {
  const { limit = 50, cursor } = readValues(new URL(url).searchParams, ["limit", "cursor"]);
  if (cursor === undefined) return { limit };
  if (!/^[\w-]{1,64}$/.test(cursor)) {
    throw new RequestError('Query parameter "cursor" must be "nextCursor" of an earlier page');
  }
  return { limit, cursor };
}

function ownerIn({ caller: { principal }, toolset }: ToolRequest): TaskOwner {
  return { principal, toolset };
}

async function reached<T>({ server }: ToolRequest, work: Promise<T> | undefined): Promise<
  T | undefined
> {
  try {
    return await work;
  } catch (error) {
    server.log(error);
    throw new responses.ProblemError(
      responses.unavailable("unavailable", "Cannot reach the tasks now; try again later"),
    );
  }
}

function readAnswers(
  body: unknown,
): { readonly ticket: string | undefined; readonly answers: Answers } {
  const { ticket, answers = {} } = responses.requireFields(
    body,
    ["ticket", "answers"],
    '{"ticket": "…", "answers": {}}',
  );
  if (ticket !== undefined && typeof ticket !== "string") {
    throw new RequestError('Cannot read the body: "ticket" must be a string', "/ticket");
  }
  if (!isObject(answers)) {
    throw new RequestError('Cannot read the body: "answers" must be an object', "/answers");
  }
  // The dispatcher checks each answer.
  return { ticket, answers: answers as unknown as Answers };
}
