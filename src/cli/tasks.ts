/** `plue tasks`: the queue of the tasks in a store, for operators. */

import { taskQueue } from "../adapters/queue/mod.ts";
import { openStore, storeAddress } from "./store.ts";
import { CommandError, EXIT, type Terminal, usageError } from "./terminal.ts";

/** The maximum number of dead tasks that are shown, and searched for an id. */
const MAX_DEAD = 1_000;

/** Shows the waiting, running and dead tasks, or puts a dead task back into the queue. */
export async function tasks(
  action: "list" | "run-again",
  id: string | undefined,
  flags: { readonly store?: string },
  terminal: Terminal,
): Promise<void> {
  const doing = action === "list" ? "show the tasks" : "run a task again";
  const address = storeAddress(terminal.io, flags.store);
  if (address === undefined) throw usageError(`Cannot ${doing}: set --store or PLUE_STORE`);
  if ((action === "run-again") !== (id !== undefined)) {
    throw usageError(`Cannot ${doing}: only run-again needs the id of a task`);
  }
  await using open = await openStore(doing, address);
  const queue = taskQueue({ store: open.store });
  const dead = await queue.deadTasks(MAX_DEAD);
  if (id !== undefined) {
    const found = dead.find((task) => task.id === id);
    const task = found && await queue.runAgain(id, { principal: found.principal });
    if (task === undefined) {
      const why = `no dead task has the id ${JSON.stringify(id)}; "plue tasks" lists them`;
      throw new CommandError(`Cannot ${doing}: ${why}`, EXIT.failed);
    }
    return terminal.printResult(task, () => `The task ${id} waits for a process`);
  }
  const state = await queue.state();
  terminal.printResult({ ...state, dead }, () => {
    const { waiting, oldestMs, running, hasMore } = state;
    const oldest = waiting === 0 ? "" : `, the oldest for ${seconds(oldestMs)}`;
    const sum = `${waiting} waiting${oldest}; ${running.length} running; ${dead.length} dead` +
      (hasMore ? "; there are more than 1,000" : "");
    const rows = [
      ...running.map((task) => ["running", task, task.worker ?? ""] as const),
      ...dead.map((task) => ["dead", task, task.error?.message ?? ""] as const),
    ].map(([shown, { id, tool, attempts, createdAt }, detail]) => {
      return [shown, id, tool, `${attempts}`, seconds(Date.now() - createdAt), detail];
    });
    if (rows.length === 0) return sum;
    const head = ["STATE", "TASK", "TOOL", "RUNS", "AGE", "WORKER OR ERROR"];
    return `${sum}\n\n${terminal.table(head, rows)}`;
  });
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
