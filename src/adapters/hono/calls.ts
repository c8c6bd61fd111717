/**
 * `/calls`: calls that wait for answers, and tasks.
 *
 * @module
 */

import type { CallTasks, TaskOwner, TaskState } from "../../execute/durable/mod.ts";
import type { DispatchContext } from "../../execute/mod.ts";
import { type Answers, isObject, pointerStep } from "../../tool/mod.ts";
import {
  eventStream,
  frame,
  json,
  type Problem,
  ProblemError,
  problemOfFailure,
  problemResponse,
  readCallIds,
  refuseQuery,
  RequestError,
  type ToolRequest,
} from "../http/mod.ts";
import { answerCall, endOf, wantsStream } from "./execute_tool.ts";
import { TOO_MANY } from "./list_tools.ts";
import type { RouteAnswer } from "./route.ts";

/** Continues a call with its ticket, or a task, with answers to its questions. */
export const continueCall: RouteAnswer = async (request, c) => {
  const { raw, server, caller: { principal }, dispatcher } = request;
  refuseQuery(raw.url);
  if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
  const id = c.req.param("id") ?? "";
  const { ticket, answers } = readAnswers(await request.readJson());
  if (ticket === undefined) return await answerTask(request, id, answers);
  const { callId = id } = readCallIds({ callId: id }, new Headers());
  const running = server.running.begin({ principal, callId }, raw);
  // Which tool it calls is in the ticket.
  const recorded = request.beginCall("", callId);
  const context: DispatchContext = { ...request.hostContext(), signal: () => running.signal };
  const call = { ticket, answers, callId };
  return await answerCall(
    { request, dispatcher, call, callId, name: "", isLed: true, context, running, recorded },
    wantsStream(raw.headers),
  );
};

async function answerTask(request: ToolRequest, id: string, answers: Answers): Promise<Response> {
  const { server: { tasks }, caller: { principal }, dispatcher } = request;
  const context = request.hostContext();
  const answer = await reached(request, tasks?.answer(dispatcher, id, answers, context));
  if (answer === undefined) return problemResponse(noSuchTask(id));
  if (!("id" in answer)) return problemResponse(problemOfFailure(answer, id));
  if (tasks !== undefined) request.outlast(endOf(tasks, answer, principal));
  return json(answer, 202);
}

/** A task as it is, or a stream of its states until it has ended. */
export const showCall: RouteAnswer = async (request, c) => {
  const { raw, server: { tasks } } = request;
  refuseQuery(raw.url);
  const id = c.req.param("id") ?? "";
  const task = await reached(request, tasks?.get(id, ownerIn(request)));
  if (tasks === undefined || task === undefined) return problemResponse(noSuchTask(id));
  return raw.method !== "HEAD" && wantsStream(raw.headers)
    ? followTask(request, tasks, task)
    : json(task);
};

function followTask(request: ToolRequest, tasks: CallTasks, { id }: TaskState): Response {
  const { raw, server, caller: { principal } } = request;
  const release = server.streams.take(principal);
  if (release === undefined) return problemResponse(TOO_MANY);
  const controller = new AbortController();
  const states = tasks.follow(id, { ...ownerIn(request), signal: controller.signal });
  let count = 0;
  const { response, ended } = eventStream({
    async next() {
      try {
        const { value } = await states.next();
        return value === undefined ? undefined : frame(count++, "task", value);
      } catch (error) {
        server.log(error);
        return undefined;
      }
    },
    cancel: () => Promise.resolve(controller.abort()),
  }, { heartbeatMs: server.heartbeatMs, signal: raw.signal });
  void ended.then(release);
  request.streamsUntil(ended);
  return response;
}

/** Cancels a task. */
export const cancelCall: RouteAnswer = async (request, c) => {
  const { raw, server } = request;
  refuseQuery(raw.url);
  if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
  const id = c.req.param("id") ?? "";
  const task = await reached(request, server.tasks?.cancel(id, ownerIn(request)));
  return task === undefined ? problemResponse(noSuchTask(id)) : json(task);
};

/**
 * The caller's tasks, the newest first. None for callers without a name: they are one for the server,
 * and only who has the id of a task may see it.
 */
export const listCalls: RouteAnswer = async (request) => {
  const { raw, server: { tasks }, caller: { principal } } = request;
  const query = new URL(raw.url).searchParams;
  for (const name of query.keys()) {
    if (name !== "limit" && name !== "cursor") {
      throw new RequestError(
        `Cannot read the query: ${JSON.stringify(name.slice(0, 60))} is neither limit nor cursor`,
      );
    }
  }
  const limit = Number(query.get("limit") ?? 50);
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) {
    throw new RequestError("Cannot read the query: limit must be a whole number from 1 to 1000");
  }
  const cursor = query.get("cursor");
  if (cursor !== null && !/^[\w-]{1,64}$/.test(cursor)) {
    throw new RequestError("Cannot read the query: cursor must be the nextCursor of a page");
  }
  const options = { ...ownerIn(request), limit, ...(cursor !== null && { cursor }) };
  const listed = principal === undefined ? undefined : tasks?.list(options);
  return json(await reached(request, listed) ?? { tasks: [] });
};

/** Whose tasks a request is about: those of tools that its caller sees. */
function ownerIn({ caller: { principal }, toolset }: ToolRequest): TaskOwner {
  return { principal, toolset };
}

/** Waits for the store of the tasks. */
async function reached<T>({ server }: ToolRequest, work: Promise<T> | undefined): Promise<
  T | undefined
> {
  try {
    return await work;
  } catch (error) {
    server.log(error);
    throw new ProblemError({
      status: 503,
      code: "unavailable",
      detail: "Cannot reach the tasks now; try again later",
      retryable: true,
    });
  }
}

function noSuchTask(id: string): Problem {
  return {
    status: 404,
    code: "not_found",
    detail: `Cannot find a task ${JSON.stringify(id.slice(0, 60))} of this caller`,
  };
}

/** @throws {RequestError} If the body has another form. */
function readAnswers(
  body: unknown,
): { readonly ticket: string | undefined; readonly answers: Answers } {
  if (!isObject(body)) {
    throw new RequestError(
      'Cannot read the body: it must be an object such as {"ticket": "…", "answers": {}}',
    );
  }
  for (const field of Object.keys(body)) {
    if (field !== "ticket" && field !== "answers") {
      throw new RequestError(
        `Cannot read the body: ${
          JSON.stringify(field.slice(0, 60))
        } is neither "ticket" nor "answers"`,
        pointerStep(field.slice(0, 60)),
      );
    }
  }
  const { ticket, answers = {} } = body;
  if (ticket !== undefined && typeof ticket !== "string") {
    throw new RequestError('Cannot read the body: "ticket" must be a string', "/ticket");
  }
  if (!isObject(answers)) {
    throw new RequestError('Cannot read the body: "answers" must be an object', "/answers");
  }
  // The dispatcher checks each of them.
  return { ticket, answers: answers as unknown as Answers };
}
