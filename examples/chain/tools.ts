/**
 * The seven tools of a chain, and which role may use each. `control` starts tasks, hands them to
 * `impl` and approves the results. It does tasks of the type `control` itself.
 *
 * @module
 */

import { defineTool, type Tool } from "../../mod.ts";
import { answer, Refusal } from "./refusal.ts";
import {
  forgetSession,
  type ImplSession,
  listSessions,
  recordSession,
  sessionIdOf,
} from "./sessions.ts";
import { type Task, TASK_STATUSES, TASK_TYPES, type TaskStatus } from "./task_file.ts";
import type { TaskFolder } from "./tasks.ts";

/** What the tools work with. */
export interface ChainParts {
  readonly tasks: TaskFolder;
  readonly now: () => Date;
  readonly launch: ((session: ImplSession) => void | Promise<void>) | undefined;
}

const TASK_ID = {
  type: "string",
  minLength: 1,
  maxLength: 64,
  description: "The task's id: the name of its file, without .md.",
} as const;
const NOTE = { type: "string", maxLength: 500 } as const;
const STATUS = { type: "string", enum: TASK_STATUSES } as const;
const COUNT = { type: "integer", minimum: 0 } as const;
const TASK = {
  type: "object",
  properties: {
    id: { type: "string" },
    title: { type: "string" },
    type: { type: "string", enum: TASK_TYPES },
    status: STATUS,
    assignee: { type: ["string", "null"] },
  },
  required: ["id", "title", "type", "status", "assignee"],
} as const;
const PROBLEMS = {
  type: "array",
  items: {
    type: "object",
    properties: { file: { type: "string" }, message: { type: "string" } },
    required: ["file", "message"],
  },
  description: "Files that are no tasks, and why.",
} as const;

const READS = { risk: "low", category: "workspace", tags: ["chain", "read-only"] } as const;
const WRITES = { risk: "medium", category: "workspace", tags: ["chain", "write"] } as const;

/** Makes the seven tools. */
export function chainTools({ tasks, now, launch }: ChainParts): readonly Tool[] {
  const chainStatus = defineTool({
    ...READS,
    namespace: "chain",
    name: "status",
    title: "Chain status",
    description: "Get the status of a task chain",
    roles: ["control", "impl"],
    parameters: {
      type: "object",
      properties: {
        chainId: {
          type: "string",
          maxLength: 255,
          description: `Chain ID (e.g., ${tasks.chainId})`,
        },
      },
      required: ["chainId"],
      additionalProperties: false,
    },
    returns: {
      type: "object",
      properties: {
        total: COUNT,
        counts: {
          type: "object",
          properties: { todo: COUNT, started: COUNT, in_review: COUNT, done: COUNT },
          required: TASK_STATUSES,
        },
        next: { type: ["string", "null"], description: "The first task that is todo." },
        inReview: { type: "array", items: { type: "string" } },
        sessions: { type: "array", items: { type: "string" } },
        problems: PROBLEMS,
      },
      required: ["total", "counts", "next", "inReview", "sessions", "problems"],
    },
    execute: ({ chainId }) =>
      answer(async () => {
        if (chainId !== tasks.chainId) {
          throw new Refusal(
            "invalid_arguments",
            `There is no chain ${JSON.stringify(chainId)}; the one here is "${tasks.chainId}"`,
          );
        }
        const { tasks: all, problems } = await tasks.list();
        const inStatus = (status: TaskStatus): string[] =>
          all.filter((task) => task.status === status).map((task) => task.id);
        return {
          total: all.length,
          counts: {
            todo: inStatus("todo").length,
            started: inStatus("started").length,
            in_review: inStatus("in_review").length,
            done: inStatus("done").length,
          },
          next: inStatus("todo")[0] ?? null,
          inReview: inStatus("in_review"),
          sessions: [...await listSessions(tasks.path)],
          problems: [...problems],
        };
      }),
  });

  const taskList = defineTool({
    ...READS,
    namespace: "task",
    name: "list",
    title: "List tasks",
    description: "Lists the tasks in order, or those of one status.",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: { status: { ...STATUS, description: "Only tasks that stand here." } },
      additionalProperties: false,
    },
    returns: {
      type: "object",
      properties: { tasks: { type: "array", items: TASK }, problems: PROBLEMS },
      required: ["tasks", "problems"],
    },
    execute: ({ status }) =>
      answer(async () => {
        const { tasks: all, problems } = await tasks.list();
        const wanted = all.filter((task) => status === undefined || task.status === status);
        return { tasks: wanted.map(shown), problems: [...problems] };
      }),
  });

  const taskStatus = defineTool({
    ...READS,
    namespace: "task",
    name: "status",
    title: "Task status",
    description: "Shows one task: where it stands, who works on it, and its text with the history.",
    roles: ["impl"],
    parameters: {
      type: "object",
      properties: { id: TASK_ID },
      required: ["id"],
      additionalProperties: false,
    },
    returns: {
      ...TASK,
      properties: { ...TASK.properties, body: { type: "string" } },
      required: [...TASK.required, "body"],
    },
    execute: ({ id }) =>
      answer(async () => {
        const task = await tasks.read(id);
        return { ...shown(task), body: task.body };
      }),
  });

  const taskStart = defineTool({
    ...WRITES,
    namespace: "task",
    name: "start",
    title: "Start a task",
    description: "Starts a task that is todo, and says who works on it: for a task of the type " +
      "impl the session that was spawned for it; a task of the type control is yours. With " +
      "from, hands a task of the type impl that is started to another session.",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: {
        id: TASK_ID,
        assignee: {
          type: "string",
          minLength: 1,
          maxLength: 200,
          description:
            "The session, as spawn_impl_session gives it. A task of the type impl needs " +
            "one.",
        },
        from: {
          type: "string",
          maxLength: 200,
          description: "The session that a started task is taken from: its assignee.",
        },
      },
      required: ["id"],
      additionalProperties: false,
    },
    returns: TASK,
    execute: ({ id, assignee, from }, context) =>
      answer(async () => {
        const starter = context.sessionId ?? "control";
        return shown(
          await tasks.change(id, (task) => {
            if (from === undefined) mustBe(task, "todo", "start");
            else {
              mustBe(task, "started", "hand over");
              mustBeImpl(task, "hand over");
              mustBeOf(task, from, "hand over");
            }
            const who = task.type === "control" ? starter : assignee;
            if (who === undefined) {
              throw new Refusal(
                "invalid_arguments",
                `Cannot start task "${id}": its type is impl, so name the session in assignee`,
              );
            }
            if (assignee !== undefined && assignee !== who) mustBeImpl(task, "hand over");
            context.throwIfAborted();
            const event = from === undefined
              ? `started by ${starter}${who === starter ? "" : ` for ${who}`}`
              : `handed over by ${starter} to ${who}`;
            return { status: "started", assignee: who, event, at: now() };
          }),
        );
      }),
  });

  const taskComplete = defineTool({
    ...WRITES,
    namespace: "task",
    name: "complete",
    title: "Complete a task",
    description:
      "Hands in a task that is assigned to you, with a summary of what was done. It is " +
      "then in review until it is approved or sent back.",
    roles: ["impl"],
    parameters: {
      type: "object",
      properties: {
        id: TASK_ID,
        summary: { ...NOTE, minLength: 1, description: "What was done, in a sentence or two." },
      },
      required: ["id", "summary"],
      additionalProperties: false,
    },
    returns: TASK,
    execute: ({ id, summary }, context) =>
      answer(async () => {
        const who = context.sessionId ?? "impl";
        return shown(
          await tasks.change(id, (task) => {
            mustBe(task, "started", "complete");
            mustBeImpl(task, "complete");
            mustBeOf(task, who, "complete");
            context.throwIfAborted();
            return { status: "in_review", event: `completed by ${who}: ${summary}`, at: now() };
          }),
        );
      }),
  });

  const taskApprove = defineTool({
    ...WRITES,
    namespace: "task",
    name: "approve",
    title: "Approve a task",
    description:
      "Approves a task that is in review, or one of the type control that you started, " +
      "which is then done; or, with approved: false and a note, sends it back to the one who " +
      "worked on it.",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: {
        id: TASK_ID,
        approved: { type: "boolean", default: true },
        note: { ...NOTE, description: "Why. Needed to send a task back." },
      },
      required: ["id"],
      additionalProperties: false,
    },
    returns: TASK,
    validate: ({ approved, note }) =>
      approved === false && !note?.trim()
        ? "To send a task back, say in note what is to be mended"
        : undefined,
    execute: ({ id, approved = true, note }, context) =>
      answer(async () =>
        shown(
          await tasks.change(id, (task) => {
            // Tasks of the type control are not submitted for review.
            const wanted = approved && task.type === "control" ? "started" : "in_review";
            mustBe(task, wanted, approved ? "approve" : "send back");
            context.throwIfAborted();
            const event = approved ? "approved" : "sent back";
            return {
              status: approved ? "done" : "started",
              event: note?.trim() ? `${event}: ${note}` : event,
              at: now(),
            };
          }),
        )
      ),
  });

  const spawnImplSession = defineTool({
    ...WRITES,
    name: "spawn_impl_session",
    title: "Spawn an implementing session",
    description: "Orders a session of an implementing agent for a task that is todo, or that was " +
      "started for this session, and records it in a file. launched says whether an agent was " +
      "started, or only the order was written.",
    roles: ["control"],
    parameters: {
      type: "object",
      properties: {
        task: TASK_ID,
        instructions: {
          type: "string",
          maxLength: 10_000,
          description: "What the agent should know besides the task's own text.",
        },
      },
      required: ["task"],
      additionalProperties: false,
    },
    returns: {
      type: "object",
      properties: {
        session: { type: "string" },
        task: { type: "string" },
        file: { type: "string" },
        launched: { type: "boolean" },
      },
      required: ["session", "task", "file", "launched"],
    },
    execute: ({ task: id, instructions = "" }, context) =>
      answer(async () => {
        // The task cannot change while its session is recorded.
        const session = await tasks.hold(id, (task) => {
          const isStartedForIt = task.status === "started" && task.assignee === sessionIdOf(task);
          if (!isStartedForIt) mustBe(task, "todo", "spawn a session for");
          mustBeImpl(task, "spawn a session for");
          context.throwIfAborted();
          return recordSession(tasks.path, task, instructions, now());
        });
        try {
          await launch?.(session);
        } catch (cause) {
          await forgetSession(tasks.path, session);
          const why = cause instanceof Error ? cause.message : String(cause);
          throw new Refusal("unavailable", `Cannot start an agent: ${why}`, { cause });
        }
        const { id: name, task, file } = session;
        return { session: name, task, file, launched: launch !== undefined };
      }),
  });

  return [
    chainStatus,
    taskList,
    taskStatus,
    taskStart,
    taskComplete,
    taskApprove,
    spawnImplSession,
  ];
}

function shown({ body: _, ...fields }: Task): Omit<Task, "body"> {
  return fields;
}

function mustBe(task: Task, wanted: TaskStatus, action: string): void {
  if (task.status === wanted) return;
  throw new Refusal(
    "denied",
    `Cannot ${action} task "${task.id}": it is ${task.status}, and must be ${wanted}`,
  );
}

function mustBeOf({ id, assignee }: Task, who: string, action: string): void {
  if (assignee === who) return;
  const other = assignee === null ? "nobody" : `"${assignee}"`;
  throw new Refusal(
    "denied",
    `Cannot ${action} task "${id}": it is assigned to ${other}, not to "${who}"`,
  );
}

function mustBeImpl(task: Task, action: string): void {
  if (task.type === "impl") return;
  throw new Refusal(
    "denied",
    `Cannot ${action} task "${task.id}": its type is control, so the control agent executes it`,
  );
}
