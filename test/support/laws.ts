/**
 * The cases of laws: all cases on Bun, and a different tenth on each runtime with V8. The cases are
 * the same in every run; to search for new random cases, change the seed.
 */

const SEED = 20_261_120;

/** Selects the tenth of the cases, and changes the seed of random cases. */
const OFFSET = "Bun" in globalThis
  ? 0
  : "Deno" in globalThis
  ? 1
  : navigator.userAgent === "Cloudflare-Workers"
  ? 2
  : 3;

/** True if laws test all of their cases on this runtime. */
export const isAll: boolean = OFFSET === 0;

/** The items that a law tests on this runtime. */
export function sample<T>(items: readonly T[]): readonly T[] {
  return isAll ? items : items.filter((_, at) => at % 10 === OFFSET);
}

/** The number of random cases, and their seed. */
export function cases(
  count: number,
  seed: number = SEED,
): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: isAll ? count : Math.ceil(count / 10), seed: seed + OFFSET };
}
