/** A call store whose connection breaks. */

import type { CallStore } from "../../src/execute/durable/mod.ts";

/** The loss of a write: its response is lost, or the write does not reach the store. */
export type Loss = "answer" | "write";

export const BROKEN = new Error("Cannot use the store of calls: the connection was lost");

/**
 * Returns a view of a store that loses writes.
 *
 * @param next Returns the loss of the next write, or nothing.
 */
export function losingStore(
  store: CallStore,
  next: (write: "create" | "update" | "delete", key: string) => Loss | undefined,
): CallStore {
  async function write<Answer>(
    name: "create" | "update" | "delete",
    key: string,
    make: () => Promise<Answer>,
  ): Promise<Answer> {
    const loss = next(name, key);
    if (loss === "write") throw BROKEN;
    const answer = await make();
    if (loss === "answer") throw BROKEN;
    return answer;
  }
  return {
    get: (key) => store.get(key),
    create: (...args) => write("create", args[0], () => store.create(...args)),
    update: (...args) => write("update", args[0], () => store.update(...args)),
    delete: (...args) => write("delete", args[0], () => store.delete(...args)),
    list: (prefix, after) => store.list(prefix, after),
    due: (...query) => store.due(...query),
  };
}

/**
 * Loses every seventh write, and the answer to every third creation. Deletions are not lost: a caller
 * cannot find out whether it or another process has deleted a value. The next write of the same key
 * is not lost, because callers give up after some attempts.
 */
export function losesOften(): (write: string, key: string) => Loss | undefined {
  let writes = 0;
  const lost = new Set<string>();
  return (write, key) => {
    if (write === "delete" || lost.delete(key)) return undefined;
    if (++writes % 7 === 0) {
      lost.add(key);
      return "write";
    }
    return write === "create" && writes % 3 === 0 ? "answer" : undefined;
  };
}
