/**
 * Calls of a host's functions: log hooks, listeners, predicates. Their errors and rejections are
 * logged. They affect neither a result nor the process, which an unhandled rejection would end:
 * TypeScript accepts an `async` function wherever the result is ignored.
 */

import { fail } from "./check.ts";

/** Returns true if `value` is a promise of any library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null &&
    typeof (value as { readonly then?: unknown }).then === "function";
}

/** Receives the error of a hook. Must not throw. */
export type HookLog = (error: unknown) => void;

/** Ignores errors, for hooks such as the log itself. */
export const noop: HookLog = () => {};

/** Calls a hook without awaiting it. */
export function callHook(hook: () => unknown, log: HookLog): void {
  try {
    const answer = hook();
    if (isThenable(answer)) Promise.resolve(answer).then(undefined, log);
  } catch (error) {
    log(error);
  }
}

/**
 * Returns the result of a function that must be synchronous: a predicate, a check.
 *
 * @param advice An alternative, which follows the reason in the error.
 * @throws {TypeError} If it is a promise, which would count as true.
 */
export function assertSync<T>(answer: T, advice = ""): T {
  if (!isThenable(answer)) return answer;
  Promise.resolve(answer).then(undefined, noop);
  return fail("use an answer", `it is a promise, and must be given at once${advice}`);
}
