/**
 * The last answers of the tools' `isAvailable` functions, so that a change is noticed whoever
 * listed the tools in between.
 *
 * @module
 */

/** The answers of one registry, by tool id. */
export class AvailabilityLog {
  readonly #answers: Map<string, boolean> = new Map();
  readonly #changed: Set<string> = new Set();

  /** Notes an answer. */
  note(id: string, isAvailable: boolean): void {
    if (this.#answers.get(id) === !isAvailable) this.#changed.add(id);
    this.#answers.set(id, isAvailable);
  }

  /** Returns true if two answers since the last time differ. */
  takeChange(id: string): boolean {
    return this.#changed.delete(id);
  }

  /** Forgets the answers of a tool that was removed or replaced. */
  forget(id: string): void {
    this.#answers.delete(id);
    this.#changed.delete(id);
  }
}
