import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { Histogram, metrics } from "../../../src/execute/metrics.ts";
import { fakeTool, fixture, never, outcome, single } from "./support.ts";

describe("ToolDispatcher.metrics()", () => {
  it("counts calls, failures by code and durations, per tool", async () => {
    const { call, clock, dispatcher } = fixture([{
      name: "work",
      execute: (params) => {
        const { ms, fails } = params as { readonly ms: number; readonly fails?: boolean };
        clock.advance(ms);
        if (fails === true) throw new Error("no");
      },
    }, { name: "idle" }]);
    for (let ms = 1; ms <= 100; ms++) await call("work", { ms });
    await call("work", { ms: 1_000, fails: true });
    await call("work", "{");
    await call("none");
    const metrics = dispatcher.metrics();
    const [work] = metrics.tools;
    assertEquals(metrics.tools.length, 1);
    assertEquals([metrics.calls, metrics.failed, metrics.unknownTool], [103, 3, 1]);
    assertEquals(work?.id, "work");
    assertEquals([work?.calls, work?.succeeded, work?.failed], [102, 100, 2]);
    assertEquals(work?.errors, { threw: 1, invalid_arguments: 1 });
    assertEquals(work?.lastRun, clock.timestamp());
    const duration = work?.duration;
    assertEquals([duration?.totalMs, duration?.minMs, duration?.maxMs], [6_050, 0, 1_000]);
    assertAlmostEquals(duration?.meanMs ?? 0, 6_050 / 102, 1e-9);
    assertAlmostEquals(duration?.p50Ms ?? 0, 50, 3.5);
    assertAlmostEquals(duration?.p95Ms ?? 0, 96, 7);
    assertAlmostEquals(duration?.p99Ms ?? 0, 100, 7);
  });

  it("does not count replayed calls among the durations", async () => {
    const { call, clock, dispatcher } = single(() => clock.advance(8));
    for (let n = 0; n < 3; n++) await call({}, { idempotencyKey: "k" });
    const [work] = dispatcher.metrics().tools;
    assertEquals([work?.calls, work?.replayed, work?.succeeded], [3, 2, 3]);
    assertEquals([work?.duration?.totalMs, work?.duration?.p50Ms], [8, 8]);
  });

  it("returns the time of the last call's end", async () => {
    const { call, clock, dispatcher } = single(() => 1);
    await call();
    const then = clock.timestamp();
    clock.advance(5_000);
    assertEquals(dispatcher.metrics().tools[0]?.lastRun, then);
  });

  it("counts the calls in flight", () => {
    const { call, dispatcher } = single(never);
    void call();
    void call();
    const metrics = dispatcher.metrics();
    assertEquals(metrics.inFlight, 2);
    assertEquals([metrics.tools[0]?.calls, metrics.tools[0]?.duration], [0, null]);
  });

  it("is JSON for any names of tools", async () => {
    const { call, dispatcher } = fixture([{ name: "__proto__", execute: () => 1 }]);
    await call("__proto__");
    const metrics = dispatcher.metrics();
    assertEquals(JSON.parse(JSON.stringify(metrics)), metrics);
    assertEquals(metrics.tools.map(({ id }) => id), ["__proto__"]);
  });

  it("continues when a tool is replaced", async () => {
    const { call, registry, dispatcher } = single(() => 1);
    await call();
    registry.updateTool(fakeTool({ name: "t", execute: () => 2 }));
    assertEquals(outcome(await call()), 2);
    assertEquals(dispatcher.metrics().tools[0]?.calls, 2);
  });

  it("retains the counters of a tool that was removed from its registry", async () => {
    const { call, registry, dispatcher } = fixture([{ name: "gone", execute: () => 1 }]);
    await call("gone");
    registry.unregisterTool("gone");
    assertEquals(dispatcher.metrics().tools.map(({ id, calls }) => [id, calls]), [["gone", 1]]);
  });

  it("has the calls of dispatchers with other options", async () => {
    const tools = ["a", "b"].map((name) => ({ name, execute: () => 1 }));
    const { call, clock, registry, dispatcher } = fixture(tools);
    const other = dispatcher.withOptions(registry, { clock });
    const counts = () => dispatcher.metrics().tools.map(({ id, calls }) => [id, calls]);
    await call("a");
    for (const name of ["a", "b", "none"]) await other.dispatch({ name });
    assertEquals(counts(), [["a", 2], ["b", 1]]);
    assertEquals(dispatcher.metrics().unknownTool, 1);
    assertEquals(other.metrics(), dispatcher.metrics());
  });

  it("does not grow with names of unknown tools", async () => {
    const { call, dispatcher } = fixture([]);
    for (let n = 0; n < 100; n++) await call(`guess-${n}`);
    assertEquals(dispatcher.metrics().tools, []);
    assertEquals(dispatcher.metrics().unknownTool, 100);
  });

  it("is zero before the first call", () => {
    const { clock, dispatcher } = fixture([]);
    assertEquals(dispatcher.metrics(), {
      ...{ since: clock.timestamp(), calls: 0, failed: 0, inFlight: 0, queued: 0 },
      ...{ unknownTool: 0, tools: [] },
    });
  });

  it("drops the counters of the oldest idle tool above 10,000 tools", () => {
    const { observe } = metrics();
    const of = (name: string) => observe?.(fakeTool({ name }));
    const [busy, idle] = [of("busy"), of("idle")];
    busy?.began?.({ request: { name: "busy" } } as never);
    for (let count = 2; count < 10_001; count++) of(`t${count}`);
    assertEquals([of("busy") === busy, of("idle") === idle], [true, false]);
  });
});

describe("Histogram", () => {
  it("returns percentiles within 7 % of the exact ones", () => {
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

  it("accepts any duration, even invalid ones", () => {
    const histogram = new Histogram();
    for (const odd of [0, 0.0001, 1e12, -1, Number.NaN]) histogram.add(odd);
    assertEquals(histogram.count, 5);
    assert(histogram.percentile(1) > 0);
  });
});
