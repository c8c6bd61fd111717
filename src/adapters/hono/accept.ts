/**
 * Which of some media types a client wants most, by its `Accept`.
 *
 * @module
 */

/** A header longer than this says nothing that a client needs to say. */
const MAX_ACCEPT = 2_048;

/**
 * Chooses a media type.
 *
 * A type counts only when it is named in full: most clients say that they take anything, and mean
 * that they do not care.
 *
 * @param accept The header.
 * @param offered What there is, the usual one first.
 * @returns One of `offered`. Between two that are wanted alike, the later one: naming it was a choice.
 */
export function chooseType<Type extends string>(
  accept: string | null | undefined,
  offered: readonly [Type, ...Type[]],
): Type {
  const [usual] = offered;
  if (accept === null || accept === undefined || accept.length > MAX_ACCEPT) {
    return usual;
  }
  const weights = new Map<string, number>();
  for (const part of accept.split(",")) {
    const [type = "", ...parameters] = part.split(";");
    const weight = parameters.map((one) => one.trim()).find((one) => /^q=/i.test(one));
    const name = type.trim().toLowerCase();
    const value = weight === undefined ? 1 : Number(weight.slice(2));
    // A type may be named more than once, with parameters that do not matter here.
    weights.set(name, Math.max(value, weights.get(name) ?? 0));
  }
  let chosen: Type = usual;
  let most = 0;
  for (const type of offered) {
    const weight = weights.get(type) ?? 0;
    // A weight that is no number is not above anything.
    if (weight > 0 && weight >= most) {
      chosen = type;
      most = weight;
    }
  }
  return chosen;
}
