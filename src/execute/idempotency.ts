/**
 * Idempotency keys: the same key within its window gets the first call's result, also while that
 * call is still running.
 *
 * The first call with a key runs the tool. Aborting it aborts that run, and the next call that
 * waits for it runs the tool instead; aborting a call that waits ends only its own wait. A result is
 * kept when the tool has run and would end alike if it ran again: a success, or a failure that is
 * not retryable.
 *
 * @module
 */

import { canonicalJson, type Clock, fnv1a, type ToolResult } from "../tool/mod.ts";
import { frozenCopy } from "./json_value.ts";
import type { IdempotencyOptions } from "./options.ts";

/** What one key stands for. */
interface Entry {
  readonly fingerprint: string;
  /** A promise while the call runs. */
  result: ToolResult | Promise<ToolResult>;
  /** `Infinity` while the call runs. */
  expiresAt: number;
  bytes: number;
}

/** Ends a call that was the first with its key: its result, whether to keep it, and its size. */
export type SettleKey = (result: ToolResult, keep: boolean, bytes: number) => void;

/**
 * What a key means for a call that brings it. The first runs the tool, and tells the outcome; later
 * ones get its result. `conflict`: the key was used with other arguments. `full`: every key that
 * may be kept is of a running call.
 */
export type Claim = SettleKey | ToolResult | Promise<ToolResult> | "conflict" | "full";

/** Remembers keys, a bounded number of them and of bytes. */
export class IdempotencyStore {
  readonly #clock: Clock;
  readonly #limits: Required<IdempotencyOptions>;
  /** Running calls in order of arrival. A result is added again at the end when its call ends. */
  readonly #entries: Map<string, Entry> = new Map();
  #bytes = 0;

  constructor(clock: Clock, limits: Required<IdempotencyOptions>) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Says what `scope` (the key, and whose it is) means for a call with these arguments. */
  claim(scope: string, fingerprint: string): Claim {
    this.#forgetExpired();
    const known = this.#entries.get(scope);
    if (known !== undefined) {
      return known.fingerprint === fingerprint ? known.result : "conflict";
    }
    if (this.#entries.size >= this.#limits.maxKeys && !this.#forgetOldest()) return "full";
    let tell: (result: ToolResult) => void = () => {};
    const told = new Promise<ToolResult>((resolve) => tell = resolve);
    const entry: Entry = { fingerprint, result: told, expiresAt: Infinity, bytes: 0 };
    this.#entries.set(scope, entry);
    return (result, keep, bytes) => {
      this.#entries.delete(scope);
      // Frozen: several callers are given the same result.
      const frozen = frozenCopy(result);
      if (keep && frozen !== undefined && bytes <= this.#limits.maxBytes) {
        entry.result = frozen;
        entry.expiresAt = this.#clock.now() + this.#limits.windowMs;
        entry.bytes = bytes;
        this.#bytes += bytes;
        this.#entries.set(scope, entry);
        while (this.#bytes > this.#limits.maxBytes && this.#forgetOldest());
      }
      tell(frozen ?? result);
    };
  }

  #forgetExpired(): void {
    const now = this.#clock.now();
    while (this.#forgetOldest(now));
  }

  /** Forgets the oldest result, if it is older than this. */
  #forgetOldest(than = Infinity): boolean {
    for (const [scope, { expiresAt, bytes }] of this.#entries) {
      if (expiresAt === Infinity) continue;
      if (expiresAt > than) break;
      this.#bytes -= bytes;
      return this.#entries.delete(scope);
    }
    return false;
  }
}

/**
 * A short text that is the same for the same JSON, whatever the order of its properties. It is
 * compared only among calls of one caller with one key, so it need not resist an attacker.
 */
export function fingerprintOf(value: unknown): string {
  const text = canonicalJson(value);
  return `${text.length}.${fnv1a(text)}.${fnv1a(text, 0x9e3779b9, 0x85ebca6b)}`;
}
