/**
 * Quotas of principals: amounts that are counted per principal, and in all.
 *
 * @module
 */

/** Counts amounts, such as bytes or calls, per principal. */
export class Quotas<Owner> {
  readonly #maxTotal: number;
  readonly #maxOfOne: number;
  readonly #used: Map<Owner, number> = new Map();
  #total = 0;

  /** @param maxOfOne The quota of each principal. */
  constructor(maxTotal: number, maxOfOne: number) {
    this.#maxTotal = maxTotal;
    this.#maxOfOne = maxOfOne;
  }

  /** Returns the amount that a principal uses. */
  usedBy(owner: Owner): number {
    return this.#used.get(owner) ?? 0;
  }

  /** Returns the limit that the usage would exceed with this additional amount. */
  exceeded(owner: Owner, amount: number): "total" | "quota" | undefined {
    if (this.#total + amount > this.#maxTotal) return "total";
    return this.usedBy(owner) + amount > this.#maxOfOne ? "quota" : undefined;
  }

  /** Adds an amount to the usage of a principal; a negative one releases it. */
  add(owner: Owner, amount: number): void {
    this.#total += amount;
    const used = this.usedBy(owner) + amount;
    if (used === 0) this.#used.delete(owner);
    else this.#used.set(owner, used);
  }
}

/** The error of a write that exceeds the quota of its principal in a store. */
export function quotaExhausted(): RangeError {
  return new RangeError("Cannot store a value: the quota of its principal is exhausted");
}
