/** The contract of every {@linkcode Layer}: calls end once and in time, and release their resources. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { ToolRegistry } from "../../mod.ts";
import * as execution from "../../src/execute/mod.ts";
import type { Layer } from "../../src/execute/mod.ts";
import * as kernel from "../../src/tool/mod.ts";
import { ToolResult } from "../../src/tool/mod.ts";
import type { ToolRuntime } from "../../src/registry/mod.ts";
import * as support from "../unit/execute/support.ts";
import { broken, type Deferred, deferred, outcome } from "../unit/execute/support.ts";

/** A layer under test. */
export interface LayerSetup {
  /** The layers of one feature, in their order: most have one. */
  readonly layers: readonly Layer[];
  /** The fields of a tool that activate the layer. */
  readonly tool?: Partial<kernel.ToolDefinition>;
  /** Fields that the host adds to each call. */
  readonly context?: execution.DispatchContext;
  readonly arguments?: unknown;
  /** Called by the tool at its start. */
  touch?(context: kernel.ToolContext): void;
  /** True if the layer waits for more than the clock before the tool starts, such as a digest. */
  readonly startsWithoutClock?: boolean;
  /** Returns the number of held slots, keys, transactions or spans, which is 0 between calls. */
  held?(): number;
}

/** A call for which the layer decides the result. */
export interface LayerCase extends Partial<LayerSetup> {
  /** A sentence about the layer. */
  readonly title: string;
  /** The function of the tool. By default, it returns `"done"`. */
  readonly execute?: Execute;
  /** The content of the result, or the code of the failure. */
  readonly outcome: unknown;
  readonly runs: boolean;
  /** The number of errors that are reported to `onError`. 0 by default. */
  readonly reports?: number;
}

type CaseSetup = LayerCase["layers"] | Omit<LayerCase, "title" | "outcome" | "runs" | "reports">;

/** Returns the case of a call whose tool does not run. `setup` may be only the list of layers. */
export function stopped(title: string, outcome: unknown, setup: CaseSetup, reports = 0): LayerCase {
  return {
    ...(Array.isArray(setup) ? { layers: setup } : setup),
    title,
    outcome,
    runs: false,
    reports,
  };
}

/** Like {@linkcode stopped}, for a call whose tool runs. */
export function ran(...of: Parameters<typeof stopped>): LayerCase {
  return { ...stopped(...of), runs: true };
}

type Execute = (context: kernel.ToolContext, world: World) => unknown;
type Make = (clock: support.FakeClock) => LayerSetup;

const TIMEOUT_MS = 100;
const GRACE_MS = 30;
const CLOSE_MS = 50;

/** A registry that counts the calls that hold a tool. */
class CountingRegistry extends ToolRegistry {
  held = 0;
  acquired = 0;

  override acquire(tool: kernel.Tool): ToolRuntime | Promise<ToolRuntime> {
    this.held++;
    this.acquired++;
    return super.acquire(tool);
  }

  override release(runtime: ToolRuntime): void {
    this.held--;
    super.release(runtime);
  }
}

/** A dispatcher with the layer, between layers of a test, on a manual clock. */
class World {
  readonly clock: support.FakeClock = new support.FakeClock();
  readonly setup: LayerSetup;
  readonly reports: execution.DispatchErrorReport[] = [];
  readonly dispatcher: execution.Dispatcher;
  readonly registry: CountingRegistry;
  readonly caller: ReturnType<typeof support.countingSignal> = support.countingSignal();
  /** Resolved when the tool starts. */
  readonly started: Deferred<void> = deferred();
  /** Resolved when a tool that is interrupted waits. */
  readonly waits: Deferred<void> = deferred();
  /** Resolved by a test, for tools that wait for it. */
  readonly block: Deferred<void> = deferred();
  /** Resolved when the tool that ignored its signal ends. */
  readonly toolEnded: Deferred<void> = deferred();
  readonly seen = { began: 0, ended: [] as ToolResult[], failed: 0, toolEnded: 0 };
  #nextRun: Deferred<void> = deferred();
  runs = 0;
  cleanups = 0;
  execute: Execute;

  constructor(
    make: Make,
    execute: Execute = () => "done",
    { outer = [], inner = [] }: {
      readonly outer?: readonly Layer[];
      readonly inner?: readonly Layer[];
    } = {},
  ) {
    this.setup = make(this.clock);
    this.execute = execute;
    const run = (context: kernel.ToolContext): unknown => {
      this.runs++;
      context.defer(() => void this.cleanups++);
      this.setup.touch?.(context);
      this.started.resolve();
      this.#nextRun.resolve();
      this.#nextRun = deferred();
      return this.execute(context, this);
    };
    const tool = support.fakeTool({
      name: "t",
      ...this.setup.tool,
      execute: (_, context) => run(context),
    });
    this.registry = new CountingRegistry({ tools: [tool], clock: this.clock });
    this.dispatcher = new execution.Dispatcher(this.registry, {
      layers: [this.#witness(), ...outer, ...this.setup.layers, ...inner],
      ...{ clock: this.clock, timeoutMs: TIMEOUT_MS, graceMs: GRACE_MS, closeTimeoutMs: CLOSE_MS },
      onError: (report) => void this.reports.push(report),
    });
  }

  /** Observes the calls as any layer may. */
  #witness(): Layer {
    return {
      name: "witness",
      stage: "call",
      observe: () => ({
        began: () => void this.seen.began++,
        ended: (_, result) => void this.seen.ended.push(result),
        failed: () => void this.seen.failed++,
        toolEnded: () => {
          this.seen.toolEnded++;
          this.toolEnded.resolve();
        },
      }),
    };
  }

  /** A call with a signal, by default. */
  call(signal: execution.DispatchContext = { signal: this.caller.signal }): Promise<ToolResult> {
    const { context, arguments: args } = this.setup;
    return this.dispatcher.dispatch({ name: "t", arguments: args }, { ...signal, ...context });
  }

  /** Moves the time in small steps until the call ends. */
  async end(call: Promise<ToolResult>): Promise<ToolResult> {
    let result: ToolResult | undefined;
    call.then((ended) => result = ended, () => {});
    while (this.setup.startsWithoutClock && this.runs < this.seen.began && result === undefined) {
      await Promise.race([call, this.#nextRun.promise]);
    }
    for (let step = 0; step < 200 && result === undefined; step++) {
      for (let turn = 0; turn < 60; turn++) await Promise.resolve();
      if (result === undefined) this.clock.advance(5);
    }
    assert(result !== undefined, "The call did not end");
    return result;
  }

  /** Checks the properties that every call must have. */
  check(result: ToolResult, { calls = 1, reports = 0 } = {}): void {
    assertEquals(this.seen.began, calls, "began() is called once for a call");
    assertEquals(this.seen.ended.length, calls, "ended() is called once for a call");
    assertStrictEquals(this.seen.ended.at(-1), result, "ended() receives the result of the caller");
    const failures = this.seen.ended.filter(({ ok }) => !ok).length;
    assertEquals(this.seen.failed, failures, "failed() is called once for a failure");
    assert(kernel.isToolResult(result), "the result is marked as one");
    assert(!Object.isFrozen(result), "the result is not frozen");
    assertEquals(this.registry.held, 0, "the tool is released");
    assertEquals(this.cleanups, this.runs, "the cleanups run once");
    assertEquals(this.setup.held?.() ?? 0, 0, "the layer gives back what it holds");
    assertEquals(this.clock.timers.size, 0, "no timer is left");
    // A listener that has fired is removed, but is still counted as a listener.
    if (!this.caller.signal.aborted) {
      assertEquals(this.caller.listeners(), 0, "no listener is left");
    }
    assertEquals(this.reports.map(({ error }) => error).slice(reports), []);
    assertEquals(this.reports.length, reports, "errors are reported");
  }

  /** Checks that a later call is not affected. */
  async checkNext(calls: number, reports = 0): Promise<void> {
    this.execute = () => "done";
    const result = await this.call({});
    assertEquals(outcome(result), "done", JSON.stringify(result));
    this.check(result, { calls, reports });
  }
}

export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** The events that end a call from outside. */
const ENDS = {
  timeout: { timeout: true, abort: false, isLate: false },
  abort: { timeout: false, abort: true, isLate: false },
  "timeout and abort": { timeout: true, abort: true, isLate: true },
};

type End = typeof ENDS.timeout;

function interrupt({ clock, caller }: World, { timeout, abort }: End): void {
  if (timeout) clock.advance(TIMEOUT_MS);
  if (abort) caller.abort(new Error("enough"));
}

/** Tools that are interrupted. The late ones ignore their signal. */
const TOOLS = {
  sync: (end: End): Execute => (_, world) => {
    interrupt(world, end);
    return "done";
  },
  async: ({ isLate }: End): Execute => async ({ signal }, { block, waits }) => {
    waits.resolve();
    await (isLate ? block.promise : untilAborted(signal));
    return "late";
  },
  generator: ({ isLate }: End): Execute =>
    async function* ({ signal }: kernel.ToolContext, { block, waits }: World) {
      yield "begun";
      waits.resolve();
      await (isLate ? block.promise : untilAborted(signal));
      yield "late";
      return "late";
    },
} as const;

/** Inner layers of stage `run`, the expected outcome of a call, and its number of errors. */
const INNER: readonly (readonly [
  title: string,
  around: (call: execution.Call, next: () => execution.Outcome) => execution.Outcome,
  outcome: unknown,
  reports: number,
])[] = [
  ["throws", broken, "threw", 1],
  ["rejects", async () => await broken(), "threw", 1],
  ["throws after the tool", async (_, next) => broken(await next()), "threw", 1],
  ["returns no result", () => undefined as never, "threw", 1],
  ["returns a frozen success", () => Object.freeze(ToolResult.ok("done")), "done", 0],
  [
    "returns a frozen failure",
    () => {
      const failed = ToolResult.error("denied", "No");
      Object.freeze(failed.error);
      return Object.freeze(failed);
    },
    "denied",
    0,
  ],
  [
    "waits and then returns the result of the tool",
    async (call, next) => {
      assertEquals(await call.wait("testing", Promise.resolve(1)), 1);
      return await next();
    },
    "done",
    0,
  ],
];

/** A layer for the first call of a test, because only that call has a signal. */
function whenWatched(name: string, stage: Layer["stage"], around: execution.LayerFunction): Layer {
  return { name, stage, when: ({ options }) => options.signal !== undefined, for: () => around };
}

/** Waits for the rest of the call, and then never returns. */
const hang: execution.LayerFunction = async (call, next) => {
  await next(call);
  return await support.never();
};

/**
 * Declares the contract's tests.
 *
 * @param make Creates the layer and the context in which it applies to a successful call. Called
 * once for each test, with the clock of the dispatcher.
 * @param cases Calls for which the layer decides the result.
 */
export function describeLayer(name: string, make: Make, cases: readonly LayerCase[] = []): void {
  describe(`the layer ${name}`, () => {
    describeResults(make);
    describeInterruptions(make);
    describeNeighbours(make);
    describeHanging(make);
    for (const { title, execute, outcome: expected, runs, reports = 0, ...changes } of cases) {
      it(title, async () => {
        const world = new World((clock) => ({ ...make(clock), ...changes }), execute);
        const result = await world.end(world.call());
        assertEquals(outcome(result), expected, JSON.stringify(result));
        assertEquals(world.runs > 0, runs, "the tool runs");
        if (!result.ok) assertEquals(result.error.ran, runs ? "yes" : "no");
        world.check(result, { reports });
      });
    }
  });
}

function describeResults(make: Make): void {
  it("returns the result of the tool", async () => {
    for (
      const execute of [
        () => "done",
        async () => await Promise.resolve("done"),
        async function* () {
          yield "begun";
          return await Promise.resolve("done");
        },
      ]
    ) {
      const world = new World(make, execute);
      const result = await world.end(world.call());
      assertEquals(outcome(result), "done", JSON.stringify(result));
      assertEquals(world.runs, 1);
      world.check(result);
      await world.checkNext(2);
    }
  });

  it("returns the failure of a tool that throws, and releases its resources", async () => {
    // deno-lint-ignore require-yield
    async function* generator(): AsyncGenerator {
      await Promise.resolve();
      broken();
    }
    for (const execute of [broken, async () => await broken(), generator]) {
      const world = new World(make, execute);
      const result = await world.end(world.call());
      assertEquals(outcome(result), "threw");
      assertEquals((result as kernel.ToolFailure).error.ran, "yes");
      world.check(result, { reports: 1 });
    }
  });

  it("returns separate results for two calls", async () => {
    const world = new World(make, async () => await Promise.resolve("done"));
    const calls = [world.call(), world.call()] as const;
    const [first, second] = [await world.end(calls[0]), await world.end(calls[1])];
    assertEquals([outcome(first), outcome(second)], ["done", "done"]);
    assert(first !== second);
    world.check(world.seen.ended.at(-1) as ToolResult, { calls: 2 });
  });
}

function describeInterruptions(make: Make): void {
  for (const [kind, end] of Object.entries(ENDS)) {
    for (const [how, toolFor] of Object.entries(TOOLS)) {
      it(`ends the call at a ${kind} while a${how === "async" ? "n" : ""} ${how} tool runs`, async () => {
        const world = new World(make, toolFor(end));
        const call = world.call();
        await world.started.promise;
        if (how !== "sync") {
          await world.waits.promise;
          await world.clock.armed();
          interrupt(world, end);
        }
        const result = await world.end(call);
        if (how === "sync") {
          // The tool has ended before the interruption can be noticed.
          assertEquals(outcome(result), "done", JSON.stringify(result));
          world.check(result);
          await world.checkNext(2);
          return;
        }
        assert(!result.ok);
        const { code, acknowledged, ran } = result.error;
        assertEquals([code, acknowledged, ran], [
          end.timeout ? "timeout" : "aborted",
          !end.isLate,
          // The dispatcher does not know whether a tool that ignored its signal has finished.
          end.isLate ? "unknown" : "yes",
        ]);
        world.check(result);
        if (end.isLate) {
          world.block.resolve();
          await world.toolEnded.promise;
          assertEquals(world.seen.toolEnded, 1);
          world.check(result);
        }
        await world.checkNext(2);
      });
    }
  }

  it("does not run the tool of a call that was aborted before it", async () => {
    const world = new World(make);
    world.caller.abort();
    const result = await world.end(world.call());
    assertEquals(outcome(result), "aborted");
    assertEquals((result as kernel.ToolFailure).error.ran, "no");
    assertEquals(world.runs, 0);
    world.check(result);
    await world.checkNext(2);
  });

  it("releases its resources when an outer layer ends the call before the tool", async () => {
    const early: execution.LayerFunction = (call, next) => {
      void next(call);
      return call.wait("testing", world.started.promise).then(() => ToolResult.ok("early"));
    };
    const world: World = new World(make, ({ signal }) => untilAborted(signal), {
      outer: [whenWatched("early", "call", early)],
    });
    const result = await world.end(world.call());
    assertEquals(outcome(result), "early");
    for (let turn = 0; turn < 60; turn++) await Promise.resolve();
    world.check(result);
    await world.checkNext(2);
  });
}

function describeNeighbours(make: Make): void {
  for (const [title, around, expected, reports] of INNER) {
    it(`returns a result if an inner layer ${title}`, async () => {
      const world = new World(make, undefined, {
        inner: [whenWatched("inner", "run", (call, next) => around(call, () => next(call)))],
      });
      const result = await world.end(world.call());
      assertEquals(outcome(result), expected, JSON.stringify(result));
      world.check(result, { reports });
    });
  }

  it("releases its resources if an outer layer throws", async () => {
    const world = new World(make, undefined, {
      outer: [whenWatched("outer", "call", async (call, next) => broken(await next(call)))],
    });
    const result = await world.end(world.call());
    assertEquals(outcome(result), "threw");
    world.check(result, { reports: 1 });
  });

  it("never makes next() throw or reject", async () => {
    const world = new World(make, async () => await broken(), {
      outer: [{
        name: "outer",
        stage: "call",
        for: () => (call, next) => {
          const rest = next(call);
          assert(rest instanceof Promise ? true : typeof rest.ok === "boolean");
          return rest instanceof Promise ? rest.then((result) => result) : rest;
        },
      }],
      inner: [{ name: "inner", stage: "run", for: () => broken }],
    });
    const result = await world.end(world.call());
    assertEquals(outcome(result), "threw");
    world.check(result, { reports: 1 });
  });
}

function describeHanging(make: Make): void {
  for (const where of ["outer", "inner"] as const) {
    it(`ends in time if an ${where} layer hangs after an interruption`, async () => {
      const world = new World(make, ({ signal }) => untilAborted(signal), {
        [where]: [whenWatched("hanging", where === "outer" ? "call" : "run", hang)],
      });
      const call = world.call();
      await world.started.promise;
      await world.clock.armed();
      world.clock.advance(TIMEOUT_MS);
      const result = await world.end(call);
      assertEquals(outcome(result), "timeout");
      const most = TIMEOUT_MS + GRACE_MS + CLOSE_MS * (world.setup.layers.length + 3);
      assert(result.durationMs <= most, `${result.durationMs} ms`);
      assertEquals(world.registry.held, 0);
      assertEquals(world.cleanups, 1);
      assertEquals(world.seen.ended, [result]);
      // Resources cannot be released if an inner layer never returns.
      if (where === "outer") world.check(result);
    });
  }
}
