import { describe, it } from "bun:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
import { breakCircuits } from "@plue/tools/resilience";
import { deferred, FakeClock, fakeTool, outcome } from "../../unit/execute/support.ts";
import { answering } from "./support.ts";

const TWICE = { failures: 2, coolDownMs: 60_000 };

describe("breakCircuits()", () => {
  it("stops running a tool that fails, tries it later, and runs it again when it works", async () => {
    const clock = new FakeClock();
    const no = new Error("no");
    const { call, runs } = answering([no, no, no, "up"], { clock, layers: [breakCircuits(TWICE)] });
    assertEquals([outcome(await call()), outcome(await call())], ["threw", "threw"]);
    clock.advance(20_000);
    const open = await call();
    assert(!open.ok);
    assertEquals([open.error.code, open.error.retryAfterMs, runs()], ["unavailable", 40_000, 2]);
    clock.advance(40_000);
    assertEquals(outcome(await call()), "threw");
    assertEquals([outcome(await call()), runs()], ["unavailable", 3]);
    clock.advance(60_000);
    assertEquals([outcome(await call()), outcome(await call())], ["up", "up"]);
  });

  it("does not count failures of the caller", async () => {
    const denied = ToolResult.error("denied", "No");
    const { call, runs } = answering([denied], { layers: [breakCircuits(TWICE)] });
    for (let n = 0; n < 4; n++) await call();
    assertEquals(runs(), 4);
  });

  it("counts failures in a row", async () => {
    const no = new Error("no");
    const { call, runs } = answering([no, "up", no, "up", no, "up"], {
      layers: [breakCircuits(TWICE)],
    });
    for (let n = 0; n < 6; n++) await call();
    assertEquals(runs(), 6);
  });

  it("has a circuit for each tool", async () => {
    const fail = () => {
      throw new Error("no");
    };
    const tools = [
      fakeTool({ name: "bad", execute: fail }),
      fakeTool({ name: "good", execute: () => 1 }),
    ];
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }), {
      layers: [breakCircuits(TWICE)],
    });
    for (let n = 0; n < 3; n++) await dispatcher.dispatch({ name: "bad" });
    assertEquals(outcome(await dispatcher.dispatch({ name: "good" })), 1);
  });

  it("has a circuit for each principal, or one for all", async () => {
    const execute = (_: unknown, { principal }: { principal?: string | undefined }) => {
      if (principal === "bob") throw new Error("His token is bad");
      return "up";
    };
    for (const [per, others] of [[undefined, "up"], ["tool", "unavailable"]] as const) {
      const { call } = answering([], { layers: [breakCircuits({ ...TWICE, per })] }, { execute });
      const outcomes = [];
      for (const principal of ["bob", "bob", "bob", "ann", undefined]) {
        outcomes.push(outcome(await call({}, { principal })));
      }
      assertEquals(outcomes, ["threw", "threw", "unavailable", others, others]);
    }
  });

  it("has a limited number of circuits, and evicts the least recently used", async () => {
    const { call, runs } = answering([new Error("no")], {
      layers: [breakCircuits({ ...TWICE, failures: 1 })],
    });
    await call({}, { principal: "first" });
    for (let n = 0; n < 999; n++) await call({}, { principal: `p${n}` });
    assertEquals(outcome(await call({}, { principal: "first" })), "unavailable");
    await call({}, { principal: "one more" });
    assertEquals(runs(), 1_001);
    assertEquals(outcome(await call({}, { principal: "first" })), "unavailable");
    assertEquals(outcome(await call({}, { principal: "p0" })), "threw");
  });

  it("does not delay calls while one tries the tool again", async () => {
    const clock = new FakeClock();
    const gate = deferred<string>();
    const started = deferred();
    let broken = true;
    const { call } = answering([], { clock, layers: [breakCircuits(TWICE)] }, {
      execute() {
        if (broken) throw new Error("no");
        started.resolve();
        return gate.promise;
      },
    });
    await call();
    await call();
    broken = false;
    clock.advance(60_000);
    const trial = call();
    await started.promise;
    const meanwhile = await call();
    assert(!meanwhile.ok);
    assertEquals([meanwhile.error.code, meanwhile.error.retryAfterMs], ["unavailable", 1_000]);
    gate.resolve("up");
    assertEquals([outcome(await trial), outcome(await call())], ["up", "up"]);
  });

  it("tries the tool again if the call that tried it was aborted", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    let waits = false;
    const { call } = answering([], { clock, graceMs: 0, layers: [breakCircuits(TWICE)] }, {
      execute() {
        if (!waits) throw new Error("no");
        controller.abort();
        return new Promise(() => {});
      },
    });
    await call();
    await call();
    waits = true;
    clock.advance(60_000);
    assertEquals(outcome(await call({}, { signal: controller.signal })), "aborted");
    waits = false;
    assertEquals([outcome(await call()), outcome(await call())], ["threw", "unavailable"]);
  });

  it("does not close for a call that began before it opened", async () => {
    const gate = deferred<string>();
    const started = deferred();
    const { call } = answering([], { layers: [breakCircuits(TWICE)] }, {
      execute(args) {
        if ((args as { slow?: boolean }).slow !== true) throw new Error("no");
        started.resolve();
        return gate.promise;
      },
    });
    const slow = call({ slow: true });
    await started.promise;
    await call();
    await call();
    gate.resolve("up");
    assertEquals([outcome(await slow), outcome(await call())], ["up", "unavailable"]);
  });

  it("counts timeouts of a tool that ignores its signal, and tries it again", async () => {
    const clock = new FakeClock();
    let hangs = true;
    const { call } = answering([], { clock, graceMs: 0, layers: [breakCircuits(TWICE)] }, {
      execute: () => hangs ? new Promise(() => {}) : "up",
    });
    const late = async (): Promise<unknown> => {
      const ending = call({}, { timeoutMs: 10 });
      await clock.armed();
      clock.advance(10);
      return outcome(await ending);
    };
    assertEquals([await late(), await late()], ["timeout", "timeout"]);
    assertEquals(outcome(await call()), "unavailable");
    clock.advance(60_000);
    assertEquals(await late(), "timeout");
    assertEquals(outcome(await call()), "unavailable");
    hangs = false;
    clock.advance(60_000);
    assertEquals(outcome(await call()), "up");
  });

  it("rejects invalid options", () => {
    for (const options of [{ failures: 1.5 }, { failures: Infinity }, { coolDownMs: Infinity }]) {
      assertThrows(() => breakCircuits(options), RangeError);
    }
    const wrong = { per: "session" as never };
    assertThrows(() => breakCircuits(wrong), TypeError, '"/per" must be one of principal, tool');
  });
});
