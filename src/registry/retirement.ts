/**
 * Disposes of tools that are out of the registry, once their calls have ended.
 *
 * @module
 */

import { throwAll } from "./throw_all.ts";
import type { ToolLifecycle } from "./lifecycle.ts";

/** How many errors of tools that were unregistered are kept for the registry's end. */
const MAX_KEPT_ERRORS = 100;

/** The tools of one registry that are on their way out. */
export class Retirement {
  readonly #underWay: Set<Promise<void>> = new Set();
  readonly #errors: unknown[] = [];
  readonly #onError: (toolId: string, error: unknown) => void;

  /** @param onError Is told when a tool could not be disposed of. Must not throw. */
  constructor(onError: (toolId: string, error: unknown) => void) {
    this.#onError = onError;
  }

  /** Disposes of one tool. Nobody waits for it but the end. */
  retire(life: ToolLifecycle): void {
    if (life.tool.dispose === undefined) return;
    const retiring = life.idle().then(() => life.dispose()).catch((error) => {
      if (this.#errors.length < MAX_KEPT_ERRORS) this.#errors.push(error);
      this.#onError(life.tool.id, error);
    }).finally(() => this.#underWay.delete(retiring));
    this.#underWay.add(retiring);
  }

  /**
   * Disposes of the last tools, one after another, when nothing is under way any more.
   *
   * @throws {AggregateError} With everything that failed since the beginning.
   */
  async end(lives: readonly ToolLifecycle[], signal: AbortSignal | undefined): Promise<void> {
    const idle = lives.map((life) => life.idle());
    await settledOrAborted(Promise.all([...idle, ...this.#underWay]), signal);
    const errors = this.#errors.splice(0);
    for (const life of lives) {
      try {
        await life.dispose();
      } catch (error) {
        errors.push(error);
      }
    }
    throwAll(errors, "Cannot dispose of the registry cleanly");
  }
}

/** Waits for `work`, which does not reject, or for the signal, whichever comes first. */
function settledOrAborted(work: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal?.removeEventListener("abort", done);
      resolve();
    };
    signal?.addEventListener("abort", done, { once: true });
    if (signal?.aborted === true) done();
    work.then(done);
  });
}
