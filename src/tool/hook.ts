/**
 * Calls of what an owner handed in: log hooks, listeners, predicates. What such a function throws
 * or rejects with goes to a log, and neither into an answer nor to the process, which would end:
 * TypeScript takes an `async` function wherever no answer is wanted.
 *
 * @module
 */

import { refuse } from "./check.ts";

/** Whether `value` is a promise, of whatever library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null &&
    typeof (value as { readonly then?: unknown }).then === "function";
}

/** A promise in the place of one of another library's; any other value as it is. */
export function inPromise(value: unknown): unknown {
  return isThenable(value) ? Promise.resolve(value) : value;
}

/** Is given what a hook threw or rejected with. Must not throw. */
export type HookLog = (error: unknown) => void;

/** For a hook whose errors have nowhere to go, such as the log itself. */
export const NO_LOG: HookLog = () => {};

/** Calls a hook. Nobody waits for its answer. */
export function callHook(hook: () => unknown, log: HookLog): void {
  try {
    const answer = hook();
    if (isThenable(answer)) Promise.resolve(answer).then(undefined, log);
  } catch (error) {
    log(error);
  }
}

/**
 * What a function answered that cannot be waited for: a predicate, a check.
 *
 * @param advice Follows the reason in the error: what to do instead.
 * @throws {TypeError} If it is a promise, which is no verdict, so that `not` cannot turn it around.
 */
export function atOnce<T>(answer: T, advice = ""): T {
  if (!isThenable(answer)) return answer;
  Promise.resolve(answer).then(undefined, NO_LOG);
  return refuse("use an answer", `it is a promise, and must be given at once${advice}`);
}
