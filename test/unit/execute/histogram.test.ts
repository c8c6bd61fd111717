import { describe, it } from "bun:test";
import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { Histogram } from "../../../src/execute/histogram.ts";

describe("Histogram", () => {
  it("gives percentiles within 7 % of the exact ones", () => {
    // Durations over six decades, in an order that repeats from run to run.
    const durations: number[] = [];
    let seed = 1;
    for (let count = 0; count < 10_000; count++) {
      seed = Math.imul(seed, 1_103_515_245) + 12_345 >>> 0;
      durations.push(0.02 * 10 ** (6 * seed / 2 ** 32));
    }
    const histogram = new Histogram();
    for (const duration of durations) histogram.add(duration);
    durations.sort((a, b) => a - b);
    for (const rank of [0.01, 0.5, 0.95, 0.99, 1]) {
      const exact = durations[Math.ceil(rank * durations.length) - 1] ?? 0;
      assertAlmostEquals(histogram.percentile(rank), exact, exact * 0.07);
    }
  });

  it("is exact about one duration", () => {
    const histogram = new Histogram();
    histogram.add(12.34);
    for (const rank of [0.5, 0.95, 0.99]) assertEquals(histogram.percentile(rank), 12.34);
    assertEquals(histogram.totalMs, 12.34);
    assertEquals(histogram.minMs, 12.34);
  });

  it("takes any duration, also ones that cannot be", () => {
    const histogram = new Histogram();
    for (const odd of [0, 0.0001, 1e12, -1, Number.NaN]) histogram.add(odd);
    assertEquals(histogram.count, 5);
    assert(histogram.percentile(1) > 0);
  });
});
