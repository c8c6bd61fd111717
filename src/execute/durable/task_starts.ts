/** Calls that become tasks, and answers that resume tasks. */

import {
  type Answers,
  clip,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  ToolResult,
  within,
} from "../../tool/mod.ts";
import { failure, unknownTool } from "../failures.ts";
import { readJson } from "../json_value.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "../request.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import { contextDigest, ownerDigest } from "./records.ts";
import { beginRun } from "./task_engine.ts";
import { keyOf, type NewTask, type TaskState } from "./task_records.ts";
import { NOT_RUN, type Pending, type TaskRuns } from "./task_runs.ts";
import { tooLarge, wrongAnswers } from "./tickets.ts";

/** A call, or a resumed call that is repeated with its ticket. */
export type NamedCall = ToolCall | ResumedCall & Pick<ToolCall, "name">;

/** Creates the task of a call, and calls `store`. Returns the stored task, or the failure. */
export async function storeTask(
  runs: TaskRuns,
  dispatcher: ToolDispatcher,
  call: ToolCall,
  context: DispatchContext,
  store: (task: NewTask) => Promise<TaskState>,
): Promise<TaskState | ToolFailure> {
  const owner = await ownerDigest(context.principal);
  const admitted = admit(runs, dispatcher, call, owner);
  if ("error" in admitted) return admitted;
  try {
    return await store({ ...admitted, owner, id: runs.records.newId(), context });
  } catch (error) {
    runs.log(error);
    const why = "its task cannot be stored now; nothing has run";
    return failure("unavailable", admitted.tool.id, why, NOT_RUN);
  }
}

export function startTask(
  runs: TaskRuns,
  dispatcher: ToolDispatcher,
  call: ToolCall,
  context: DispatchContext,
): Promise<TaskState | ToolFailure> {
  return storeTask(
    runs,
    dispatcher,
    call,
    context,
    (task) =>
      runs.hold(task, ({ arguments: args, callId }) => {
        const request = { name: task.call.name, arguments: args, callId };
        return beginRun(context, (own) => dispatcher.dispatch(request, own));
      }),
  );
}

/** Runs a call, which becomes a task if it takes longer than `afterMs` milliseconds. */
export async function runOrStart(
  runs: TaskRuns,
  dispatcher: ToolDispatcher,
  call: NamedCall,
  context: DispatchContext,
  afterMs: number,
): Promise<ToolResult | TaskState> {
  const [tool] = findTool(dispatcher, call);
  if (tool?.execution === "task" && !("ticket" in call)) {
    return await startTask(runs, dispatcher, call, context);
  }
  if (tool === undefined || tool.execution === "sync") {
    return await dispatcher.dispatch(call, context);
  }
  const owner = await ownerDigest(context.principal);
  const id = runs.records.newId();
  // The tool receives the id of the task as `callId`; the ticket of a resumed call has a `callId`.
  const isResumed = "ticket" in call;
  const named = isResumed ? call : { ...call, callId: call.callId ?? id };
  const run = beginRun(context, (own) => dispatcher.dispatch(named, own));
  const result = await within(runs.clock, afterMs, run.result);
  if (result !== TIME_OVER) {
    run.detach();
    return result;
  }
  try {
    const admitted = admit(runs, dispatcher, call, owner);
    if ("error" in admitted) return await run.result;
    // No other process can repeat a resumed call: its earlier answers are in its ticket.
    const task = { ...admitted, owner, id, context, isRepeatable: !isResumed };
    return await runs.hold(task, () => run);
  } catch (error) {
    // If the record cannot be stored, the call does not become a task.
    runs.log(error);
    return await run.result;
  }
}

/** Answers questions of a task. The task resumes in this process if no answer is missing. */
export async function answerTask(
  runs: TaskRuns,
  dispatcher: ToolDispatcher,
  id: string,
  added: Answers,
  context: DispatchContext,
): Promise<TaskState | ToolFailure | undefined> {
  const { principal } = context;
  const { toolset } = dispatcher;
  const key = await keyOf(id, principal);
  const before = await runs.find(id, { principal, toolset });
  if (key === undefined || before === undefined) return undefined;
  const keys = (before.questions ?? []).map((question) => question.key);
  const wrong = wrongAnswers(added, keys) ?? tooLarge({ ...added, ...before.answers });
  if (await contextDigest(context.context) !== before.context) {
    const why = "its host passed another context for the call";
    return ToolResult.error("ticket_refused", `Cannot answer the task: ${why}`, NOT_RUN);
  }
  if (before.status === "input_required" && wrong !== undefined) {
    return ToolResult.error("invalid_arguments", `Cannot answer the task: ${wrong}`);
  }
  const answers = added ?? {};
  const { ticket = "" } = before;
  const owner = await ownerDigest(principal);
  const refused = runs.checkRunning(owner, before.tool);
  if (refused !== undefined) return refused;
  let pending: Pending | undefined;
  return await runs.counted(owner, async () => {
    // The ticket is used once, even with concurrent answers.
    const { lease, record: after } = await runs.records.claim(key, (now, begun) => {
      pending = undefined;
      if (now?.status !== "input_required" || now.ticket !== ticket) return undefined;
      const { questions = [], ticket: _, answers: earlier, ...rest } = now;
      pending = { ticket, questions, ...(earlier && { answers: earlier }) };
      const missing = questions.filter((question) => !Object.hasOwn(answers, question.key));
      return missing.length > 0
        ? { ...now, questions: missing, answers: { ...answers, ...earlier } }
        : { ...rest, status: "working", ...begun };
    });
    if (after === undefined) return undefined;
    if (pending === undefined) {
      return ToolResult.error(
        "ticket_refused",
        "Cannot answer the task: it does not wait for an answer now",
      );
    }
    if (lease !== undefined) {
      const all = { ...answers, ...(pending as Pending).answers };
      runs.keep(lease, beginRun(context, (own) => dispatcher.resume(ticket, all, own)), pending);
    }
    return runs.records.shown(after);
  });
}

function admit(
  runs: TaskRuns,
  dispatcher: ToolDispatcher,
  request: ToolCall,
  owner: string,
): Pick<NewTask, "tool" | "call"> | ToolFailure {
  const [tool, call] = findTool(dispatcher, request);
  if (tool === undefined) return unknownTool(clip(String(call.name)));
  if (tool.execution === "sync") {
    return failure("not_executable", tool.id, "it does not run as a task", NOT_RUN);
  }
  const refused = runs.checkRunning(owner, tool.id);
  if (refused !== undefined) return refused;
  const args = readJson(call.arguments ?? {}, dispatcher.maxArgumentBytes, true);
  if (args.kind === "json") return { tool, call: { ...call, arguments: args.value } };
  const why = "its arguments are not JSON, or too large";
  return failure("invalid_arguments", tool.id, why, NOT_RUN);
}

/** Returns the tool and the call; for a call of a bridge, the target tool and its call. */
function findTool(
  { toolset, maxArgumentBytes }: ToolDispatcher,
  call: ToolCall,
): readonly [Tool | undefined, ToolCall] {
  const { bridge } = toolset;
  const target = bridge?.resolveTarget(call, maxArgumentBytes);
  return bridge && target
    ? [bridge.target.resolve(target.name), target]
    : [toolset.resolve(call.name), call];
}
