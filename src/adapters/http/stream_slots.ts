/**
 * Bounds how many streams are open at once.
 *
 * @module
 */

import type { ToolServer } from "./request.ts";
import type { Problem } from "./responses.ts";

/** The slots for open streams: in all, and for one principal, which must not take all of them. */
export class StreamSlots {
  readonly #max: number;
  readonly #maxPerPrincipal: number;
  readonly #taken = new Map<string | undefined, number>();
  #total = 0;

  /**
   * @param max How many streams may be open at once.
   * @param maxPerPrincipal How many of them one principal may have. Without `authorize`, all callers
   * are one principal.
   */
  constructor(max: number, maxPerPrincipal: number = Math.ceil(max / 16)) {
    this.#max = max;
    this.#maxPerPrincipal = maxPerPrincipal;
  }

  /**
   * Takes a slot.
   *
   * @param principal Callers without one share theirs.
   * @returns A function that releases the slot; `undefined` if none is free.
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

const MAX_STREAMS = 1_024;

/**
 * Makes the slots of a server.
 *
 * @param max How many there are. @default {1_024}
 * @param maxPerPrincipal How many of them one principal may have; not used without `authorize`.
 */
export function slotsFor(
  { authorizes }: Pick<ToolServer, "authorizes">,
  max: number = MAX_STREAMS,
  maxPerPrincipal?: number,
): StreamSlots {
  return new StreamSlots(max, authorizes ? maxPerPrincipal : Infinity);
}

/** It does not name the owners of the streams: a caller must not learn how many others there are. */
export const TOO_MANY_STREAMS: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Cannot follow the tools: too many streams are open",
  headers: { "retry-after": "60" },
};
