/**
 * Idempotency keys: the same key within its window gets the first call's result, also while that
 * call is still running.
 *
 * The first call with a key runs the tool. Aborting it aborts that run, and the next call that
 * waits for it runs the tool instead; aborting a call that waits ends only its own wait. A result is
 * kept when the tool has run and the same call would not come out otherwise: a success, or a
 * failure that is not retryable.
 *
 * @module
 */

import { type Clock, copyJson, fnv1a, isObject, type ToolResult } from "../tool/mod.ts";
import type { IdempotencyOptions } from "./options.ts";

/** What one key stands for: a call that runs, or the result that it left. */
interface Entry {
  readonly fingerprint: string;
  /** While the call runs. */
  running: Promise<ToolResult> | undefined;
  /** When it has ended. */
  result: ToolResult | undefined;
  expiresAt: number;
  bytes: number;
}

/** What a key means for a call that brings it. */
export type Claim =
  /** It is the first: it runs the tool, and tells the outcome. */
  | { readonly kind: "first"; settle(result: ToolResult, keep: boolean, bytes: number): void }
  | { readonly kind: "running"; readonly result: Promise<ToolResult> }
  | { readonly kind: "kept"; readonly result: ToolResult }
  /** The key was used with other arguments. */
  | { readonly kind: "conflict" }
  /** Every key that may be kept is in use. */
  | { readonly kind: "full" };

/** Remembers keys, a bounded number of them and of bytes. */
export class IdempotencyStore {
  readonly #clock: Clock;
  readonly #limits: Required<IdempotencyOptions>;
  /** Running calls at their time of arrival; kept results behind them, in the order they ended. */
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
      if (known.fingerprint !== fingerprint) return { kind: "conflict" };
      if (known.result !== undefined) return { kind: "kept", result: known.result };
      if (known.running !== undefined) return { kind: "running", result: known.running };
    }
    if (this.#entries.size >= this.#limits.maxKeys && !this.#forgetOldest()) {
      return { kind: "full" };
    }
    const entry: Entry = {
      fingerprint,
      running: undefined,
      result: undefined,
      expiresAt: Infinity,
      bytes: 0,
    };
    let tell: (result: ToolResult) => void = () => {};
    entry.running = new Promise((resolve) => tell = resolve);
    this.#entries.set(scope, entry);
    return {
      kind: "first",
      settle: (result, keep, bytes) => {
        this.#entries.delete(scope);
        // Whoever is given it later must not be able to change it for the next one.
        const frozen = freezeResult(result);
        if (keep && frozen !== undefined) this.#keep(scope, entry, frozen, bytes);
        tell(frozen ?? result);
      },
    };
  }

  #keep(scope: string, entry: Entry, result: ToolResult, bytes: number): void {
    if (bytes > this.#limits.maxBytes) return;
    entry.running = undefined;
    entry.result = result;
    entry.expiresAt = this.#clock.now() + this.#limits.windowMs;
    entry.bytes = bytes;
    this.#bytes += bytes;
    this.#entries.set(scope, entry);
    while (this.#bytes > this.#limits.maxBytes && this.#forgetOldest());
  }

  #forgetExpired(): void {
    const now = this.#clock.now();
    for (const [scope, entry] of this.#entries) {
      if (entry.result === undefined) continue;
      if (entry.expiresAt > now) break;
      this.#forget(scope, entry);
    }
  }

  #forgetOldest(): boolean {
    for (const [scope, entry] of this.#entries) {
      if (entry.result === undefined) continue;
      this.#forget(scope, entry);
      return true;
    }
    return false;
  }

  #forget(scope: string, entry: Entry): void {
    this.#entries.delete(scope);
    this.#bytes -= entry.bytes;
  }
}

function freezeResult(result: ToolResult): ToolResult | undefined {
  try {
    return copyJson(result, "the result");
  } catch {
    return undefined;
  }
}

/**
 * A short text that is the same for the same JSON, whatever the order of its properties. It is
 * compared only among calls of one caller with one key, so it need not resist an attacker.
 */
export function fingerprintOf(value: unknown): string {
  const text = JSON.stringify(
    value,
    (_key, member: unknown) =>
      isObject(member)
        ? Object.fromEntries(Object.keys(member).sort().map((key) => [key, member[key]]))
        : member,
  );
  return `${text.length}.${fnv1a(text)}.${fnv1a(text, 0x9e3779b9, 0x85ebca6b)}`;
}
