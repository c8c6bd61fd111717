/**
 * The number of random cases for the laws. The same cases in every run; to search for new ones,
 * change the seed.
 *
 * @module
 */

const SEED = 20_261_120;

/** Added to the seed, so that the tenths of the runtimes add up. */
const OFFSET = "Bun" in globalThis
  ? 0
  : "Deno" in globalThis
  ? 1
  : navigator.userAgent === "Cloudflare-Workers"
  ? 2
  : 3;

/** All cases on Bun, and a tenth, others, on the runtimes that share V8. */
export function cases(
  count: number,
  seed: number = SEED,
): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: OFFSET === 0 ? count : Math.ceil(count / 10), seed: seed + OFFSET };
}
