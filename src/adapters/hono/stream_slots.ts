/**
 * How many streams may be open at once: in all, and for one caller, so that one cannot take the
 * places of the others.
 *
 * @module
 */

/** What part of the places one caller may have, unless the owner says otherwise. */
const PART = 16;

/** How many places one caller has of `max`, unless the owner says otherwise. */
export function defaultSlotsPerPrincipal(max: number): number {
  return Math.ceil(max / PART);
}

/** The places. */
export class StreamSlots {
  readonly #max: number;
  readonly #maxPerPrincipal: number;
  readonly #taken = new Map<string | undefined, number>();
  #total = 0;

  /** @param maxPerPrincipal Where nobody is asked who calls, the same as `max`. */
  constructor(max: number, maxPerPrincipal: number) {
    this.#max = max;
    this.#maxPerPrincipal = maxPerPrincipal;
  }

  /**
   * Takes a place.
   *
   * @param principal Callers without one share theirs.
   * @returns Gives it back, at the first call; `undefined` if there is none.
   */
  take(principal: string | undefined): (() => void) | undefined {
    const own = this.#taken.get(principal) ?? 0;
    if (this.#total >= this.#max || own >= this.#maxPerPrincipal) return undefined;
    this.#total++;
    this.#taken.set(principal, own + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#total--;
      const left = (this.#taken.get(principal) ?? 1) - 1;
      if (left === 0) this.#taken.delete(principal);
      else this.#taken.set(principal, left);
    };
  }
}
