/**
 * A folder of tasks, one Markdown file each.
 *
 * A change is written to a file beside the task and then renamed over it, so that a reader sees the
 * old task or the new one. While it is made, a lock file keeps other processes away.
 *
 * @module
 */

import { lstat, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { Refusal } from "./refusal.ts";
import { changeTask, isTaskId, parseTask, type Task, type TaskChange } from "./task_file.ts";

/** How many tasks a folder holds at most. */
export const MAX_TASKS = 1000;
/** How large a task's file may be, in bytes. */
export const MAX_TASK_BYTES = 131_072;

/** A file that is not a task, and the reason. */
export interface TaskProblem {
  readonly file: string;
  readonly message: string;
}

/** The tasks and problems of a folder, in code-unit order. */
export interface TaskList {
  readonly tasks: readonly Task[];
  readonly problems: readonly TaskProblem[];
}

/** A folder of tasks. */
export class TaskFolder {
  readonly path: string;
  /** The chain's id: the name of the folder. */
  readonly chainId: string;
  /** Settles when the last caller that holds a task, or waits for it, has released it. */
  readonly #held: Map<string, Promise<void>> = new Map();

  constructor(path: string) {
    this.path = path;
    this.chainId = basename(resolve(path));
  }

  /** Reads every task. A file that cannot be read is listed as a problem. */
  async list(): Promise<TaskList> {
    const tasks: Task[] = [];
    const problems: TaskProblem[] = [];
    for (const id of await this.#ids()) {
      try {
        tasks.push(parseTask(await this.#text(id), id));
      } catch (reason) {
        if (!(reason instanceof Error)) throw reason;
        problems.push({ file: `${id}.md`, message: reason.message });
      }
    }
    return { tasks, problems };
  }

  /**
   * Reads one task.
   *
   * @throws {Refusal} If there is none, or its file is no task.
   */
  async read(id: string): Promise<Task> {
    return (await this.#load(id)).task;
  }

  /**
   * Changes a task.
   *
   * @param decide Gets the task and returns the change; throws a {@linkcode Refusal} to leave it
   * unchanged.
   * @returns The task as it is now.
   * @throws {Refusal} If `decide` does, there is no such task, or another process holds it.
   */
  change(id: string, decide: (task: Task) => TaskChange): Promise<Task> {
    return this.#hold(id, async (task, text) => {
      const changed = changeTask(text, decide(task));
      // A file this large could not be read again.
      if (new TextEncoder().encode(changed).length > MAX_TASK_BYTES) {
        throw new Refusal(
          "unavailable",
          `The file of task "${id}" is full; its owner must trim it`,
        );
      }
      await this.#replace(id, changed);
      return parseTask(changed, id);
    });
  }

  /**
   * Runs `work` while no other call or process changes the task.
   *
   * @throws {Refusal} If `work` does, there is no such task, or another process holds it.
   */
  hold<T>(id: string, work: (task: Task) => Promise<T>): Promise<T> {
    return this.#hold(id, work);
  }

  /**
   * Calls in this process wait in order; another process that holds the lock leads to a refusal.
   */
  #hold<T>(id: string, work: (task: Task, text: string) => Promise<T>): Promise<T> {
    const before = this.#held.get(id) ?? Promise.resolve();
    const done = before.then(async () => {
      await this.#load(id);
      const unlock = await this.#lock(id);
      try {
        const { task, text } = await this.#load(id);
        return await work(task, text);
      } finally {
        await unlock();
      }
    });
    const settled = done.then(() => {}, () => {}).then(() => {
      if (this.#held.get(id) === settled) this.#held.delete(id);
    });
    this.#held.set(id, settled);
    return done;
  }

  async #replace(id: string, text: string): Promise<void> {
    const temporary = join(this.path, `.${id}.${crypto.randomUUID()}.tmp`);
    try {
      const file = await open(temporary, "wx");
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, join(this.path, `${id}.md`));
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async #load(id: string): Promise<{ readonly task: Task; readonly text: string }> {
    const ids = await this.#ids();
    if (!ids.includes(id)) {
      const near = ids.filter((other) => other.startsWith(id.slice(0, 3)))
        .slice(0, 3).map((other) => `"${other}"`).join(", ");
      throw new Refusal(
        "invalid_arguments",
        `There is no task ${JSON.stringify(id)}${near === "" ? "" : `. Near it: ${near}`}`,
      );
    }
    try {
      const text = await this.#text(id);
      return { task: parseTask(text, id), text };
    } catch (cause) {
      if (!(cause instanceof Error)) throw cause;
      const message = `The file of task "${id}" must be mended first. ${cause.message}`;
      throw new Refusal("unavailable", message, { cause });
    }
  }

  async #text(id: string): Promise<string> {
    const path = join(this.path, `${id}.md`);
    const { size } = await lstat(path);
    if (size > MAX_TASK_BYTES) {
      throw new SyntaxError(`Cannot read the task: it has more than ${MAX_TASK_BYTES} bytes`);
    }
    return await readFile(path, "utf8");
  }

  /** The ids in the names of the files. Links and folders are not tasks. */
  async #ids(): Promise<readonly string[]> {
    const entries = await readdir(this.path, { withFileTypes: true });
    const ids = entries
      .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
      .map((entry) => entry.name.slice(0, -3))
      .filter((id) => isTaskId(id) && id !== "README")
      .sort();
    if (ids.length > MAX_TASKS) {
      throw new Refusal("unavailable", `There are more than ${MAX_TASKS} tasks`);
    }
    return ids;
  }

  async #lock(id: string): Promise<() => Promise<void>> {
    const name = `.${id}.lock`;
    try {
      await writeFile(join(this.path, name), "", { flag: "wx" });
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause;
      throw new Refusal(
        "unavailable",
        `Task "${id}" is being changed by another process; try again. If none is running, its ` +
          `owner must delete the file "${name}"`,
        { cause },
      );
    }
    return () => rm(join(this.path, name), { force: true });
  }
}
