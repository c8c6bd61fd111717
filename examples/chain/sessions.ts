/**
 * Sessions of implementing agents: one Markdown file each, in `sessions/` beside the tasks. The
 * file records the order to start an agent; the host starts it.
 *
 * @module
 */

import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Refusal } from "./refusal.ts";
import { isTaskId, type Task } from "./task_file.ts";

const FOLDER = "sessions";
const PREFIX = "impl-";

/** A session that was ordered. */
export interface ImplSession {
  /** What the host hands to the dispatcher as `sessionId`. */
  readonly id: string;
  /** The task to work on. */
  readonly task: string;
  /** What the agent is told besides the task. */
  readonly instructions: string;
  /** The file that records it, relative to the chain's folder. */
  readonly file: string;
}

/** The id that the session of a task has. */
export function sessionIdOf(task: Task): string {
  return `${PREFIX}${task.id}`;
}

/**
 * Records a session for a task. There is one per task: two agents on one task would undo each
 * other's work.
 *
 * @throws {Refusal} If the task has a session.
 */
export async function recordSession(
  folder: string,
  task: Task,
  instructions: string,
  at: Date,
): Promise<ImplSession> {
  const id = sessionIdOf(task);
  const file = `${FOLDER}/${id}.md`;
  await mkdir(join(folder, FOLDER), { recursive: true });
  const lines = [
    "---",
    `id: ${id}`,
    "role: impl",
    `task: ${task.id}`,
    `created: ${at.toISOString()}`,
    "---",
    "",
    `# ${task.title}`,
    "",
    instructions,
    "",
  ];
  try {
    await writeFile(join(folder, file), lines.join("\n"), { flag: "wx" });
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause;
    throw new Refusal("denied", `Task "${task.id}" has the session "${id}" already`, { cause });
  }
  return { id, task: task.id, instructions, file };
}

/** Removes a session that could not be started. */
export async function forgetSession(folder: string, session: ImplSession): Promise<void> {
  await rm(join(folder, session.file), { force: true });
}

/** The ids of all sessions, in code-unit order. */
export async function listSessions(folder: string): Promise<readonly string[]> {
  let names: readonly string[];
  try {
    names = await readdir(join(folder, FOLDER));
  } catch (reason) {
    // No session was recorded yet.
    if (reason instanceof Error && "code" in reason && reason.code === "ENOENT") return [];
    throw reason;
  }
  return names
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(".md"))
    .map((name) => name.slice(0, -3))
    .filter((id) => isTaskId(id.slice(PREFIX.length)))
    .sort();
}
