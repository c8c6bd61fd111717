/**
 * A chain of tasks in one JSON file. Changes run one after another. Each change writes a new file
 * that replaces the old file.
 */

import { readFile, rename, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { Refusal } from "../workspace/refusal.ts";

/** The states of a task, in order. */
export const STATUSES = ["todo", "started", "in_review", "done"] as const;

/** A task. */
export interface Task {
  readonly id: string;
  readonly title: string;
  /**
   * `impl` requires handoff to an implementation agent in a fresh session; `control` is executed by
   * the control agent directly (a verification, a review, a closure).
   *
   * @default {"impl"}
   */
  readonly type?: "impl" | "control";
  readonly status: (typeof STATUSES)[number];
  /** The session that works on the task. */
  readonly assignee?: string | undefined;
  /** The session that was spawned for the task. */
  readonly session?: string | undefined;
  /** One line for each change. */
  readonly history?: readonly string[];
}

/** The tasks of one chain, in the order of the file. */
export class ChainStore {
  /** The chain's id: the name of the file without `.json`. */
  readonly id: string;
  readonly #file: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
    this.id = basename(file, ".json");
  }

  async list(): Promise<readonly Task[]> {
    return JSON.parse(await readFile(this.#file, "utf8"));
  }

  /** @throws {Refusal} If there is no such task. */
  async get(id: string): Promise<Task> {
    return find(await this.list(), id);
  }

  /**
   * Changes a task, once earlier changes are complete.
   *
   * @param change Returns the new fields and the line for the history, or throws.
   */
  change(
    id: string,
    change: (task: Task) => { readonly fields: Partial<Task>; readonly event: string },
  ): Promise<Task> {
    const result = this.#last.then(async () => {
      const tasks = await this.list();
      const task = find(tasks, id);
      const { fields, event } = change(task);
      const line = event.replace(/\s+/g, " ").trim();
      const changed = { ...task, ...fields, history: [...task.history ?? [], line] };
      const all = tasks.map((one) => one === task ? changed : one);
      await writeFile(`${this.#file}.new`, `${JSON.stringify(all, null, 2)}\n`);
      await rename(`${this.#file}.new`, this.#file);
      return changed;
    });
    this.#last = result.catch(() => {});
    return result;
  }
}

function find(tasks: readonly Task[], id: string): Task {
  const task = tasks.find((one) => one.id === id);
  if (task !== undefined) return task;
  throw new Refusal("invalid_arguments", `There is no task "${id}"`, { pointer: "/id" });
}
