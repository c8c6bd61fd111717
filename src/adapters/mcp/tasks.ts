/**
 * The extension `io.modelcontextprotocol/tasks` of revision 2026-07-28: the result of a call is a task,
 * which the client polls and cancels, and whose questions the client answers.
 */

import * as mcp from "@modelcontextprotocol/server";
import type { ClientCapabilities } from "@modelcontextprotocol/server";
import type { CallTasks, TaskState } from "../../execute/durable/mod.ts";
import { type Answer, isObject, type Question, type ToolResult } from "../../tool/mod.ts";
import { outlastTask, type ToolRequest, withAllLayers } from "../http/mod.ts";
import { idOf, isForTask, isListen, isRequest, type JsonRpcRefusal } from "./message.ts";
import {
  answerOf,
  CallQuestions,
  canReceive,
  declaredBy,
  hasOneField,
  requestOf,
} from "./questions.ts";

const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** The capability of clients and servers with tasks. */
const TASKS_CAPABILITY: ClientCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };

export function supportsTasks({ extensions }: ClientCapabilities): boolean {
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION]);
}

export function requireTasks(declared: ClientCapabilities): void {
  if (!supportsTasks(declared)) throw missingTasks();
}

function missingTasks(): mcp.MissingRequiredClientCapabilityError {
  return new mcp.MissingRequiredClientCapabilityError({ requiredCapabilities: TASKS_CAPABILITY });
}

/** The protocol's code for a header that differs from the body. */
const HEADER_MISMATCH = -32_020;

/** Returns the refusal of an invalid request. The SDK does not check the extension's headers. */
export function taskRefusal(message: unknown, headers: Headers): JsonRpcRefusal | undefined {
  if (!isRequest(message) || !isObject(message.params)) return undefined;
  const { taskId, notifications, _meta } = message.params;
  if (isForTask(message) && headers.get("mcp-name") !== taskId) {
    const why = "Cannot answer: the header mcp-name must have the value of /params/taskId";
    return { status: 400, id: idOf(message), error: { code: HEADER_MISMATCH, message: why } };
  }
  const follows = isListen(message) && isObject(notifications) &&
    notifications["taskIds"] !== undefined;
  if (!follows || supportsTasks(declaredBy(isObject(_meta) ? _meta : undefined))) return undefined;
  const { code, message: why, data } = missingTasks();
  return { status: 400, id: idOf(message), error: { code, message: why, data } };
}

/** The result of a call that becomes a task. The SDK adds an empty `content`. */
export function createdTask(task: TaskState): mcp.CallToolResult {
  return { ...wireTask(task), resultType: "task" } as unknown as mcp.CallToolResult;
}

function wireTask(
  { id, status, progress, createdAt, updatedAt, ttlMs, pollMs }: TaskState,
): Readonly<Record<string, unknown>> {
  return {
    taskId: id,
    status,
    // JSON omits `undefined` members.
    statusMessage: status === "working" ? progress?.message : undefined,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    // In MCP the lifetime counts from the beginning.
    ttlMs: updatedAt - createdAt + ttlMs,
    pollIntervalMs: pollMs,
  };
}

export interface TaskRequest {
  readonly request: ToolRequest;
  readonly tasks: CallTasks;
  write(toolId: string, result: ToolResult): mcp.CallToolResult;
}

/** Serves the methods of tasks. Tasks of other callers are not found. */
export function serveTasks(server: mcp.Server, { request, tasks, write }: TaskRequest): void {
  const { dispatcher, caller: { principal }, toolset } = request;
  server.registerCapabilities(TASKS_CAPABILITY);

  const declared = (): ClientCapabilities => server.getClientCapabilities() ?? {};

  async function find(taskId: string): Promise<TaskState> {
    requireTasks(declared());
    // A task of a hidden tool is not found.
    const task = await tasks.get(taskId, { principal, toolset });
    if (task !== undefined) return task;
    throw new mcp.ProtocolError(
      mcp.ProtocolErrorCode.InvalidParams,
      "Cannot find the task: this caller has no task with that id, or it has expired",
    );
  }

  server.setRequestHandler("tasks/get", { params: TASK_PARAMS }, async ({ taskId }) => {
    const task = await find(taskId);
    return { ...wireTask(task), ...detailsOf(task, declared(), write) };
  });
  server.setRequestHandler(
    "tasks/update",
    { params: TASK_PARAMS },
    async ({ taskId }, { mcpReq: { inputResponses } }) => {
      const task = await find(taskId);
      if (inputResponses === undefined) {
        throw new mcp.ProtocolError(
          mcp.ProtocolErrorCode.InvalidParams,
          "Invalid params for tasks/update: /inputResponses must be an object",
        );
      }
      const answers = answersTo(task, inputResponses);
      if (Object.keys(answers).length === 0) return {};
      const questions = new CallQuestions({ declared: declared() }, true);
      const answered = await tasks.answer(withAllLayers(dispatcher, "tasks"), task.id, answers, {
        ...request.hostContext(),
        onQuestion: (question, { signal }) => questions.answer(question, signal),
      });
      // The protocol requires that late answers are ignored.
      if (answered !== undefined && "id" in answered) outlastTask(request, tasks, answered);
      return {};
    },
  );
  server.setRequestHandler("tasks/cancel", { params: TASK_PARAMS }, async ({ taskId }) => {
    const { id } = await find(taskId);
    await tasks.cancel(id, { principal });
    return {};
  });
}

function detailsOf(
  task: TaskState,
  declared: ClientCapabilities,
  write: TaskRequest["write"],
): Readonly<Record<string, unknown>> {
  const { status, questions = [], result, tool } = task;
  if (status === "input_required") {
    const requests = questions.flatMap((question) => {
      const request = askable(question, declared);
      return request === undefined ? [] : [[keyOf(task, question), request] as const];
    });
    return {
      inputRequests: Object.fromEntries(requests),
      ...(requests.length < questions.length && { statusMessage: UNANSWERABLE }),
    };
  }
  if (result === undefined || status !== "completed" && status !== "failed") return {};
  try {
    // A failure of the tool is a result, which the model reads.
    return { status: "completed", result: write(tool, result) };
  } catch (error) {
    if (!(error instanceof mcp.ProtocolError)) throw error;
    const { code, message } = error;
    return { status: "failed", statusMessage: message, error: { code, message } };
  }
}

const UNANSWERABLE = "The task waits for an answer that this client cannot give";

/** Returns the request for a question; `undefined` if the client cannot receive it. */
function askable(question: Question, declared: ClientCapabilities): mcp.InputRequest | undefined {
  const request = requestOf(question);
  return request instanceof TypeError || !canReceive(declared, request) ? undefined : request;
}

/** Reads the answers to the questions of a task. Other answers are ignored, as the protocol requires. */
function answersTo(
  task: TaskState,
  inputResponses: Readonly<Record<string, unknown>>,
): { [key: string]: Answer } {
  const answers: [string, Answer][] = [];
  for (const question of task.questions ?? []) {
    const key = keyOf(task, question);
    const answer = Object.hasOwn(inputResponses, key)
      ? answerOf(inputResponses[key], hasOneField(question))
      : undefined;
    if (answer !== undefined) answers.push([question.key, answer]);
  }
  return Object.fromEntries(answers);
}

/** Returns the key of a question. A repeated question has a new key: clients answer a key once. */
function keyOf({ updatedAt }: TaskState, { key, issues }: Question): string {
  return issues === undefined ? key : `${key}~${updatedAt.toString(36)}`;
}

/** The schema of the params. The SDK has no schemas for this extension. */
const TASK_PARAMS: mcp.StandardSchemaV1<unknown, { readonly taskId: string }> = {
  "~standard": {
    version: 1,
    vendor: "plue",
    validate(value) {
      const taskId = isObject(value) ? value["taskId"] : undefined;
      return typeof taskId === "string"
        ? { value: { taskId } }
        : { issues: [{ message: "/taskId must be a string" }] };
    },
  },
};
