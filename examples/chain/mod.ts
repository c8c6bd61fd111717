/**
 * Seven tools for a chain of tasks, each for the roles that the specification gives it: `control`
 * plans and reviews, `impl` does the work.
 */

import { defineTool, type Tool, ToolRegistry } from "../../mod.ts";
import { answer, Refusal } from "../workspace/refusal.ts";
import { ChainStore, STATUSES, type Task } from "./store.ts";

/** Options for {@linkcode createChainRegistry}. */
export interface ChainOptions {
  /** The chain's file: a JSON array of {@linkcode Task}. Its name is the chain's id. */
  readonly file: string;
  /**
   * Starts an agent with the session id. By default the session is only recorded, and
   * `spawn_impl_session` returns `launched: false`.
   */
  readonly launch?: (session: string, task: Task, instructions: string) => unknown;
}

/** Makes a registry of the chain's tools. */
export function createChainRegistry({ file, launch }: ChainOptions): ToolRegistry {
  const store = new ChainStore(file);
  return new ToolRegistry({
    tools: [...readingTools(store), ...writingTools(store), spawnTool(store, launch)],
  });
}

const READS = { category: "workspace", risk: "safe", tags: ["read-only", "chain"] } as const;
const WRITES = { category: "workspace", risk: "medium", tags: ["write", "chain"] } as const;
const TASK_ID = { type: "string", maxLength: 64, description: "Task ID (e.g., 002)" } as const;
const TEXT = { type: "string", maxLength: 10_000 } as const;

function readingTools(store: ChainStore): readonly Tool[] {
  const chainStatus = defineTool({
    ...READS,
    name: "chain:status",
    description: "Get the status of a task chain",
    roles: ["control", "impl"],
    parameters: {
      type: "object",
      properties: {
        chainId: { type: "string", maxLength: 255, description: `Chain ID (e.g., ${store.id})` },
      },
      required: ["chainId"],
      additionalProperties: false,
    },
    execute: ({ chainId }) =>
      answer(async () => {
        if (chainId !== store.id) {
          const message = `There is no chain "${chainId}"; the one here is "${store.id}"`;
          throw new Refusal("invalid_arguments", message, { pointer: "/chainId" });
        }
        const tasks = await store.list();
        const count = (status: string) => tasks.filter((task) => task.status === status).length;
        return {
          total: tasks.length,
          counts: Object.fromEntries(STATUSES.map((status) => [status, count(status)])),
          next: tasks.find(({ status }) => status === "todo")?.id ?? null,
        };
      }),
  });
  const taskStatus = defineTool({
    ...READS,
    name: "task:status",
    description: "View a task with its history",
    roles: ["impl"],
    parameters: {
      type: "object",
      properties: { id: TASK_ID },
      required: ["id"],
      additionalProperties: false,
    },
    execute: ({ id }) => answer(() => store.get(id)),
  });
  const taskList = defineTool({
    ...READS,
    name: "task:list",
    description: "List the tasks of the chain",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: { status: { type: "string", enum: STATUSES } },
      additionalProperties: false,
    },
    execute: async ({ status }) =>
      (await store.list()).filter((task) => status === undefined || task.status === status),
  });
  return [chainStatus, taskStatus, taskList];
}

function writingTools(store: ChainStore): readonly Tool[] {
  const taskStart = defineTool({
    ...WRITES,
    name: "task:start",
    description:
      "Start a task: one of type impl for the session in assignee, one of type control " +
      "for yourself",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: { id: TASK_ID, assignee: { ...TEXT, minLength: 1, maxLength: 200 } },
      required: ["id"],
      additionalProperties: false,
    },
    execute: ({ id, assignee }, { sessionId = "control" }) =>
      answer(() =>
        store.change(id, (task) => {
          check(task, "start", "todo");
          const worker = task.type === "control" ? sessionId : assignee;
          if (worker === undefined) {
            const message = `Cannot start task "${id}": its type is impl; name a session`;
            throw new Refusal("invalid_arguments", message, { pointer: "/assignee" });
          }
          return {
            fields: { status: "started", assignee: worker },
            event: `started for ${worker}`,
          };
        })
      ),
  });
  const taskComplete = defineTool({
    ...WRITES,
    name: "task:complete",
    description: "Mark a task that is assigned to you as complete; it is then in review",
    roles: ["impl"],
    parameters: {
      type: "object",
      properties: { id: TASK_ID, summary: { ...TEXT, minLength: 1 } },
      required: ["id", "summary"],
      additionalProperties: false,
    },
    execute: ({ id, summary }, { sessionId = "impl" }) =>
      answer(() =>
        store.change(id, (task) => {
          check(task, "complete", "started", "impl");
          if (task.assignee !== sessionId) {
            const message = `Cannot complete task "${id}": it is assigned to "${task.assignee}"`;
            throw new Refusal("denied", message);
          }
          return {
            fields: { status: "in_review" },
            event: `completed by ${sessionId}: ${summary}`,
          };
        })
      ),
  });
  const taskApprove = defineTool({
    ...WRITES,
    name: "task:approve",
    description: "Approve a completed task, or a started one of type control; or, with " +
      "approved: false, send a completed task back with a note",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: { id: TASK_ID, approved: { type: "boolean", default: true }, note: TEXT },
      required: ["id"],
      additionalProperties: false,
    },
    validate: ({ approved, note }) =>
      approved === false && !note?.trim()
        ? "To send a task back, give the reason in note"
        : undefined,
    execute: ({ id, approved = true, note = "" }) =>
      answer(() =>
        store.change(id, (task) => {
          const from = approved && task.type === "control" ? "started" : "in_review";
          check(task, approved ? "approve" : "send back", from);
          const event = `${approved ? "approved" : "sent back"} ${note}`;
          return { fields: { status: approved ? "done" : "started" }, event };
        })
      ),
  });
  return [taskStart, taskComplete, taskApprove];
}

function spawnTool(store: ChainStore, launch: ChainOptions["launch"]): Tool {
  return defineTool({
    ...WRITES,
    name: "spawn_impl_session",
    description: "Spawn a nested implementation agent for a task that is todo",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: { task: TASK_ID, instructions: TEXT },
      required: ["task"],
      additionalProperties: false,
    },
    execute: ({ task: id, instructions = "" }) =>
      answer(async () => {
        const session = `impl-${id}`;
        const task = await store.change(id, (task) => {
          check(task, "spawn a session for", "todo", "impl");
          if (task.session === undefined) {
            return { fields: { session }, event: `spawned ${session}` };
          }
          throw new Refusal("denied", `Task "${id}" has the session "${task.session}" already`);
        });
        try {
          await launch?.(session, task, instructions);
        } catch (cause) {
          const why = cause instanceof Error ? cause.message : String(cause);
          await store.change(
            id,
            () => ({ fields: { session: undefined }, event: `failed: ${why}` }),
          );
          throw new Refusal("unavailable", `Cannot start an agent: ${why}`, { cause });
        }
        return { session, launched: launch !== undefined };
      }),
  });
}

/** @throws {Refusal} If the task has another status or type. */
function check(task: Task, action: string, status: Task["status"], type?: "impl"): void {
  const why = task.status !== status
    ? `it is ${task.status}, and must be ${status}`
    : type === "impl" && task.type === "control"
    ? "its type is control, so the control agent executes it"
    : undefined;
  if (why !== undefined) {
    throw new Refusal("denied", `Cannot ${action} task "${task.id}": ${why}`);
  }
}
