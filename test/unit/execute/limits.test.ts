import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { Gate, type Turn } from "../../../src/execute/limits.ts";

function waits(entry: boolean | Turn): Turn {
  assert(typeof entry === "object", "the call should wait");
  return entry;
}

/** Writes down who gets in, when. */
function follow(turn: Turn, name: string, order: string[]): Promise<void> {
  return turn.entered.then(() => void order.push(name));
}

describe("Gate", () => {
  it("admits queued calls in order", async () => {
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

  it("lets principals take turns", async () => {
    const gate = new Gate(1, Infinity, 10);
    const order: string[] = [];
    gate.enter("a", "bob");
    const done = [["bob", "1"], ["bob", "2"], ["bob", "3"], ["ann", "1"], ["ann", "2"]].map(
      ([principal, number]) =>
        follow(waits(gate.enter("a", principal)), `${principal} ${number}`, order),
    );
    for (const _ of done) gate.leave("a");
    await Promise.all(done);
    assertEquals(order, ["bob 1", "ann 1", "bob 2", "ann 2", "bob 3"]);
  });

  it("reserves a quota of the queue for each principal", async () => {
    const gate = new Gate(1, Infinity, 4);
    gate.enter("a", "bob");
    const [, , , last] = ["1", "2", "3", "4"].map(() => waits(gate.enter("a", "bob")));
    assertEquals(gate.enter("a", "bob"), false);
    const first = waits(gate.enter("a", "ann"));
    assertEquals(await last?.entered, false);
    waits(gate.enter("a", "ann"));
    // Both have two of the four now.
    assertEquals([gate.enter("a", "ann"), gate.enter("a", "bob"), gate.queued], [false, false, 4]);
    // It never had a slot, so there is nothing to release.
    last?.cancel();
    assertEquals(gate.enter("a", "ann"), false);
    gate.leave("a");
    gate.leave("a");
    assertEquals(await first.entered, true);
  });

  it("rejects when the queue is full", () => {
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
