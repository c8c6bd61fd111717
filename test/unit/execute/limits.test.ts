import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { Gate, type Turn } from "../../../src/execute/limits.ts";

function waits(entry: true | false | Turn): Turn {
  assert(typeof entry === "object", "the call should wait");
  return entry;
}

/** Writes down who gets in, when. */
function follow(turn: Turn, name: string, order: string[]): Promise<void> {
  return turn.entered.then(() => void order.push(name));
}

describe("Gate", () => {
  it("lets waiting calls in as they came, and nobody past them", async () => {
    const gate = new Gate(1, Infinity, 10);
    const order: string[] = [];
    assertEquals(gate.enter("a"), true);
    const first = follow(waits(gate.enter("b")), "first", order);
    const second = follow(waits(gate.enter("a")), "second", order);
    gate.leave("a");
    // The place is the first's already, though it has not heard of it.
    const third = follow(waits(gate.enter("c")), "third", order);
    await first;
    gate.leave("b");
    await second;
    gate.leave("a");
    await third;
    assertEquals(order, ["first", "second", "third"]);
    assertEquals(gate.queued, 0);
  });

  it("does not let one tool's queue hold up the others", async () => {
    const gate = new Gate(3, 1, 10);
    assertEquals(gate.enter("slow"), true);
    const waiting = waits(gate.enter("slow"));
    assertEquals(gate.enter("other"), true);
    gate.leave("other");
    assertEquals(gate.queued, 1);
    gate.leave("slow");
    await waiting.entered;
    assertEquals(gate.queued, 0);
  });

  it("refuses when the queue is full", () => {
    const gate = new Gate(1, Infinity, 1);
    gate.enter("a");
    waits(gate.enter("a"));
    assertEquals(gate.enter("a"), false);
    assertEquals(gate.queued, 1);
  });

  it("forgets a call that gave up waiting", async () => {
    const gate = new Gate(1, Infinity, 10);
    gate.enter("a");
    const gone = waits(gate.enter("a"));
    const stays = waits(gate.enter("a"));
    gone.cancel();
    assertEquals(gate.queued, 1);
    gate.leave("a");
    await stays.entered;
    assertEquals(gate.queued, 0);
  });

  it("passes a place on that was given to a call which gave up", async () => {
    const gate = new Gate(1, Infinity, 10);
    gate.enter("a");
    const gone = waits(gate.enter("a"));
    const next = waits(gate.enter("a"));
    gate.leave("a");
    gone.cancel();
    await next.entered;
    gate.leave("a");
    assertEquals(gate.enter("a"), true);
  });
});
