/**
 * A host's operations other than a call of a tool: continuing a suspended call, and tasks.
 *
 * @module
 */

import type { CallTasks, TaskState } from "../../execute/durable/mod.ts";
import type { DispatchContext } from "../../execute/mod.ts";
import { type Answers, isObject, type ToolFailure, type ToolResult } from "../../tool/mod.ts";
import type { HostTools } from "./host_tools.ts";
import type { BridgeFailureCode } from "./statuses.ts";

/** The operations, by their numbers in the flags of an execute frame. */
export const OPERATION = {
  call: 0,
  resume: 1,
  startTask: 2,
  pollTask: 3,
  cancelTask: 4,
  answerTask: 5,
} as const;

/** A failure outside of the dispatcher. */
export interface Refusal {
  readonly code: BridgeFailureCode;
  readonly message: string;
}

/** Returns true for the answer of the dispatcher or a task. */
export function isAnswer(answer: ToolResult | Refusal): answer is ToolResult {
  return "ok" in answer;
}

/**
 * Runs an operation.
 *
 * @param operation One of {@linkcode OPERATION}.
 * @param name The tool, the ticket or the id of the task.
 * @param json The parameters or the answers.
 */
export async function operate(
  tools: HostTools,
  operation: number,
  name: string,
  json: string | undefined,
  context: DispatchContext,
): Promise<ToolResult | Refusal> {
  const { dispatcher, tasks } = tools;
  const isAnswered = operation === OPERATION.resume || operation === OPERATION.answerTask;
  const answers = isAnswered ? readAnswers(json) : {};
  if (answers === undefined) {
    return refusal("invalid_argument", "answers_json must be a JSON object");
  }
  if (operation === OPERATION.resume) return await dispatcher.resume(name, answers, context);
  if (tasks === undefined) {
    const message = "The tools keep no tasks: their module exports no `tasks`";
    return refusal("invalid_argument", message);
  }
  const state = await askTasks(tasks, tools, operation, name, json, answers, context);
  if (state === undefined) return refusal("unknown_task", "There is no such task");
  return "ok" in state ? state : { ok: true, content: state, durationMs: 0 };
}

function askTasks(
  tasks: CallTasks,
  { dispatcher }: HostTools,
  operation: number,
  name: string,
  json: string | undefined,
  answers: Answers,
  { sessionId, messageId, signal }: DispatchContext,
): Promise<TaskState | ToolFailure | undefined> {
  const context = { sessionId, messageId, signal };
  const owner = { toolset: dispatcher.toolset };
  switch (operation) {
    case OPERATION.startTask:
      return tasks.start(dispatcher, { name, arguments: json }, context);
    case OPERATION.cancelTask:
      return tasks.cancel(name, owner);
    case OPERATION.answerTask:
      return tasks.answer(dispatcher, name, answers, context);
    default:
      return tasks.get(name, owner);
  }
}

/** The answers to questions; `undefined` if the text is not an object. The dispatcher checks each. */
function readAnswers(text = "{}"): Answers | undefined {
  try {
    const answers: unknown = JSON.parse(text);
    return isObject(answers) ? answers as Answers : undefined;
  } catch {
    return undefined;
  }
}

function refusal(code: BridgeFailureCode, message: string): Refusal {
  return { code, message };
}
