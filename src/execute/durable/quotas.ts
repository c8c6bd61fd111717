/**
 * Quotas per principal. `Quotas` counts the usage in this process. `MeasuredQuotas` measures the
 * usage from time to time, in a store that several processes share.
 */

import type { RegistryClock } from "../../tool/mod.ts";

export class Quotas<Owner> {
  readonly #maxTotal: number;
  readonly #maxOfOne: number;
  readonly #used: Map<Owner, number> = new Map();
  #total = 0;

  constructor(maxTotal: number, maxOfOne: number) {
    this.#maxTotal = maxTotal;
    this.#maxOfOne = maxOfOne;
  }

  get total(): number {
    return this.#total;
  }

  usedBy(owner: Owner): number {
    return this.#used.get(owner) ?? 0;
  }

  /** Returns the limit that the usage would exceed with this additional amount. */
  exceeded(owner: Owner, amount: number): "total" | "quota" | undefined {
    if (this.#total + amount > this.#maxTotal) return "total";
    return this.usedBy(owner) + amount > this.#maxOfOne ? "quota" : undefined;
  }

  /** Adds an amount to the usage of a principal; a negative amount lowers the usage. */
  add(owner: Owner, amount: number): void {
    this.#total += amount;
    const used = this.usedBy(owner) + amount;
    if (used === 0) this.#used.delete(owner);
    else this.#used.set(owner, used);
  }
}

export interface MeasuredQuotasSettings {
  readonly maxBytes: number;
  readonly clock: Pick<RegistryClock, "timestamp">;
  /** The bytes of writes before the first measurement. By default, 1/1024 of the quota. */
  readonly firstBytes?: number;
  /** Returns the usage of a principal in bytes; `undefined` if the bucket is nearly empty. */
  measure(owner: string, bytes: number): Promise<number | undefined>;
}

interface Share {
  /** The bytes that may be written before the next measurement. */
  left: number;
  /** The free bytes of the last measurement, less the bytes of later writes. */
  free: number;
  /** The bytes of writes in flight, which a measurement may miss. */
  pending: number;
  at: number;
  /** The minimum time until the next measurement, in milliseconds. */
  pauseMs: number;
  measuring: Promise<void> | undefined;
  failure: unknown;
}

/** A grant: at most 1/8 of the free bytes and 1/128 of the quota, at least 1/1024 of the quota. */
const PART_OF_FREE = 8;
const MOST = 128;
const LEAST = 1_024;
/** The pause after a measurement of a full quota, and after a slow failure, in milliseconds. */
export const MEASURED_AFTER_MS = 10_000;
const SLOW_MS = 1_000;
const MAX_OWNERS = 10_000;

/**
 * The quotas of principals in a store that does not count bytes per principal. A process measures a
 * principal's usage from time to time, and grants a part of the free bytes until the next
 * measurement.
 */
export class MeasuredQuotas {
  readonly #settings: MeasuredQuotasSettings;
  readonly #shares: Map<string, Share> = new Map();

  constructor(settings: MeasuredQuotasSettings) {
    this.#settings = settings;
  }

  /** Calls `write`, and adds its bytes to the usage; if the quota is exhausted, calls `full`. */
  async write<Answer>(
    owner: string,
    bytes: number,
    write: () => Promise<Answer>,
    full: () => Promise<Answer>,
  ): Promise<Answer> {
    if (bytes <= 0) return await write();
    const { maxBytes, clock, firstBytes } = this.#settings;
    let share = this.#shares.get(owner);
    if (share === undefined) {
      share = {
        ...{ left: firstBytes ?? maxBytes / LEAST, free: maxBytes, pending: 0 },
        ...{ at: -Infinity, pauseMs: 0, measuring: undefined, failure: undefined },
      };
      for (const oldest of this.#shares.keys()) {
        if (this.#shares.size < MAX_OWNERS) break;
        this.#shares.delete(oldest);
      }
      this.#shares.set(owner, share);
    }
    if (bytes > share.left) {
      const pauseMs = Math.max(share.pauseMs, bytes <= share.free ? 0 : MEASURED_AFTER_MS);
      if (clock.timestamp() - share.at >= pauseMs) {
        await (share.measuring ??= this.#measure(share, owner, bytes));
      }
      if (bytes > share.free) {
        if (share.failure !== undefined) throw share.failure;
        share.left = 0;
        return await full();
      }
    }
    share.left -= bytes;
    share.free -= bytes;
    share.pending += bytes;
    try {
      return await write();
    } catch (error) {
      // The write may be repeated. If it was made, the next measurement counts its bytes.
      share.left += bytes;
      share.free += bytes;
      throw error;
    } finally {
      share.pending -= bytes;
    }
  }

  /** Measures the usage. After a slow measurement, the next one waits ten times as long. */
  async #measure(share: Share, owner: string, bytes: number): Promise<void> {
    const { maxBytes, clock, measure } = this.#settings;
    const least = maxBytes / LEAST;
    const begunAt = clock.timestamp();
    try {
      const kept = await measure(owner, bytes + share.pending) ?? 0;
      // Other writes may have started during the measurement.
      share.free = maxBytes - kept - share.pending;
      share.left = Math.max(least, Math.min(share.free / PART_OF_FREE, maxBytes / MOST));
      share.at = clock.timestamp();
      share.pauseMs = share.at - begunAt < SLOW_MS ? 0 : 10 * (share.at - begunAt);
      share.failure = undefined;
    } catch (error) {
      if (clock.timestamp() - begunAt >= SLOW_MS) {
        share.free = share.left = least;
        share.at = clock.timestamp();
        share.pauseMs = MEASURED_AFTER_MS;
        share.failure = error;
      }
      throw error;
    } finally {
      share.measuring = undefined;
    }
  }

  give(owner: string, bytes: number): void {
    const share = this.#shares.get(owner);
    if (share !== undefined) share.free += bytes;
  }
}
