/**
 * Which things to take within a limit of weight, at most one form of each: the multiple-choice
 * knapsack problem.
 *
 * @module
 */

/** One form of a thing. */
export interface Choice {
  /** A whole number, 1 or above. */
  readonly weight: number;
  /** Above 0. */
  readonly worth: number;
}

/** How many steps the exact way may take: some 20 ms. */
const MAX_STEPS = 2_000_000;

/**
 * Chooses at most one form of each group, so that their weight is at most `capacity` and they are
 * worth as much as possible. Exact while groups times capacity is at most 2,000,000. Above that it
 * takes what is worth most per weight, and loses less than what one thing is worth.
 *
 * @param groups The forms of each thing.
 * @returns The index of the form of each thing; -1 for none.
 */
export function chooseWithin(
  groups: readonly (readonly Choice[])[],
  capacity: number,
): readonly number[] {
  const total = groups.reduce(
    (sum, forms) => sum + Math.max(0, ...forms.map(({ weight }) => weight)),
    0,
  );
  const room = Math.max(0, Math.min(capacity, total));
  return groups.length * (room + 1) <= MAX_STEPS ? exactly(groups, room) : greedily(groups, room);
}

/** Dynamic programming over the weight. */
function exactly(groups: readonly (readonly Choice[])[], room: number): readonly number[] {
  const best = new Float64Array(room + 1);
  const taken = groups.map((forms) => {
    const picks = new Int8Array(room + 1).fill(-1);
    // Downwards, so that a group is counted once.
    for (let weight = room; weight >= 0; weight--) {
      let worth = best[weight] as number;
      forms.forEach((form, index) => {
        if (form.weight > weight) return;
        const with_ = (best[weight - form.weight] as number) + form.worth;
        if (with_ <= worth) return;
        worth = with_;
        picks[weight] = index;
      });
      best[weight] = worth;
    }
    return picks;
  });
  let left = room;
  return taken.map((_, index) => taken.length - 1 - index).map((group) => {
    const pick = taken[group]?.[left] ?? -1;
    left -= groups[group]?.[pick]?.weight ?? 0;
    return pick;
  }).reverse();
}

/** Takes the steps from form to form that gain most per weight, while there is room. */
function greedily(groups: readonly (readonly Choice[])[], room: number): readonly number[] {
  const picks = groups.map(() => -1);
  let left = room;
  const steps = groups.flatMap((forms, group) => {
    const order = forms.map((form, index) => ({ ...form, group, index }))
      .sort((a, b) => a.weight - b.weight);
    let last: Choice = { weight: 0, worth: 0 };
    return order.map((form) => {
      const gain = (form.worth - last.worth) / Math.max(1, form.weight - last.weight);
      last = form;
      return { ...form, gain };
    });
  }).sort((a, b) => b.gain - a.gain || a.group - b.group || a.weight - b.weight);
  for (const { group, index, weight, worth } of steps) {
    const now = groups[group]?.[picks[group] ?? -1] ?? { weight: 0, worth: 0 };
    if (worth <= now.worth || weight - now.weight > left) continue;
    left -= weight - now.weight;
    picks[group] = index;
  }
  return picks;
}
