/**
 * How much each owner may keep in a bucket. The server counts no owners, so what one keeps is measured
 * now and then, and each process lets it write a part of what is free before it is measured again.
 *
 * @module
 */

import type { RegistryClock } from "../../tool/mod.ts";
import { BoundedMap } from "../http/mod.ts";

/** What shares are kept with. */
export interface OwnerSharesSettings {
  /** How many bytes one owner may keep. */
  readonly maxBytes: number;
  readonly clock: Pick<RegistryClock, "timestamp">;
  /** How many bytes are written before the first measurement. Absent: a small part of the share. */
  readonly firstBytes?: number;
  /** How many bytes an owner keeps; `undefined` if so many others have room, whatever it keeps. */
  measure(owner: string, bytes: number): Promise<number | undefined>;
}

/** What a process knows of an owner. */
interface Share {
  /** How much may be written before it is measured again. */
  left: number;
  /** How much is free, as far as this process knows. */
  free: number;
  /** How much is being written, which a measurement may not have seen. */
  pending: number;
  /** When it was measured. */
  at: number;
  /** What is being measured now. */
  measuring: Promise<number | undefined> | undefined;
}

/** Of what is free, and of the share, a process lets an owner write so much: one part of these. */
const PART_OF_FREE = 8;
const MOST = 128;
const LEAST = 1_024;
/** An owner whose share is full is measured again after that time, in milliseconds. */
export const MEASURED_AFTER_MS = 10_000;
/** How many owners a process knows. */
const MAX_OWNERS = 10_000;

/** The shares of the owners of a bucket. */
export class OwnerShares {
  readonly #settings: OwnerSharesSettings;
  readonly #shares: BoundedMap<string, Share> = new BoundedMap({ maxEntries: MAX_OWNERS });

  constructor(settings: OwnerSharesSettings) {
    this.#settings = settings;
  }

  /**
   * Writes for an owner.
   *
   * @param bytes How much more the owner keeps then.
   * @param write What writes.
   * @param full Answers instead of that where the owner's share has no room.
   */
  async write<Answer>(
    owner: string,
    bytes: number,
    write: () => Promise<Answer>,
    full: () => Promise<Answer>,
  ): Promise<Answer> {
    if (bytes <= 0) return await write();
    const { maxBytes, clock, firstBytes } = this.#settings;
    const least = maxBytes / LEAST;
    let share = this.#shares.get(owner);
    if (share === undefined) {
      share = {
        left: firstBytes ?? least,
        free: maxBytes,
        pending: 0,
        at: -Infinity,
        measuring: undefined,
      };
      this.#shares.set(owner, share);
    }
    if (bytes > share.left) {
      if (bytes <= share.free || clock.timestamp() - share.at >= MEASURED_AFTER_MS) {
        const measured = share;
        measured.measuring ??= this.#settings.measure(owner, bytes + share.pending)
          .finally(() => measured.measuring = undefined);
        const kept = await share.measuring ?? 0;
        // Other writes may have begun meanwhile.
        share.free = maxBytes - kept - share.pending;
        share.left = Math.max(least, Math.min(share.free / PART_OF_FREE, maxBytes / MOST));
        share.at = clock.timestamp();
      }
      if (bytes > share.free) {
        share.left = 0;
        return await full();
      }
    }
    share.left -= bytes;
    share.free -= bytes;
    share.pending += bytes;
    try {
      return await write();
    } finally {
      share.pending -= bytes;
    }
  }
  /** Counts what an owner has deleted. */
  give(owner: string, bytes: number): void {
    const share = this.#shares.get(owner);
    if (share !== undefined) share.free += bytes;
  }
}
