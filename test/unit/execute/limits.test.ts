import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { ConcurrencyLimiter, type SlotRequest } from "../../../src/execute/limiter.ts";

function waits(entry: boolean | SlotRequest): SlotRequest {
  assert(typeof entry === "object", "the call should wait");
  return entry;
}

/** A limiter of one running call. */
function limiterOf(maxQueued: number): ConcurrencyLimiter {
  return new ConcurrencyLimiter({ maxConcurrent: 1, maxConcurrentPerTool: Infinity, maxQueued });
}

/** Records the order in which requests get their slots. */
function follow(request: SlotRequest, name: string, order: string[]): Promise<void> {
  return request.granted.then(() => void order.push(name));
}

describe("ConcurrencyLimiter", () => {
  it("assigns slots to waiting calls in the order of their arrival", async () => {
    const limiter = limiterOf(10);
    const order: string[] = [];
    assertEquals(limiter.acquire("a"), true);
    const first = follow(waits(limiter.acquire("b")), "first", order);
    const second = follow(waits(limiter.acquire("a")), "second", order);
    limiter.release("a");
    // The slot already belongs to the first call, although its promise has not resolved.
    const third = follow(waits(limiter.acquire("c")), "third", order);
    await first;
    limiter.release("b");
    await second;
    limiter.release("a");
    await third;
    assertEquals(order, ["first", "second", "third"]);
    assertEquals(limiter.queued, 0);
  });

  it("serves waiting principals in turn", async () => {
    const limiter = limiterOf(10);
    const order: string[] = [];
    limiter.acquire("a", "bob");
    const done = [["bob", "1"], ["bob", "2"], ["bob", "3"], ["ann", "1"], ["ann", "2"]].map(
      ([principal, number]) =>
        follow(waits(limiter.acquire("a", principal)), `${principal} ${number}`, order),
    );
    for (const _ of done) limiter.release("a");
    await Promise.all(done);
    assertEquals(order, ["bob 1", "ann 1", "bob 2", "ann 2", "bob 3"]);
  });

  it("reserves a quota of the queue for each principal", async () => {
    const limiter = limiterOf(4);
    limiter.acquire("a", "bob");
    const [, , , last] = ["1", "2", "3", "4"].map(() => waits(limiter.acquire("a", "bob")));
    assertEquals(limiter.acquire("a", "bob"), false);
    const first = waits(limiter.acquire("a", "ann"));
    assertEquals(await last?.granted, false);
    waits(limiter.acquire("a", "ann"));
    // Both principals have two of the four slots now.
    assertEquals([limiter.acquire("a", "ann"), limiter.acquire("a", "bob"), limiter.queued], [
      false,
      false,
      4,
    ]);
    // The call never had a slot, so there is nothing to release.
    last?.cancel();
    assertEquals(limiter.acquire("a", "ann"), false);
    limiter.release("a");
    limiter.release("a");
    assertEquals(await first.granted, true);
  });

  it("removes an aborted call from the queue", async () => {
    const limiter = limiterOf(10);
    limiter.acquire("a");
    const gone = waits(limiter.acquire("a"));
    const stays = waits(limiter.acquire("a"));
    gone.cancel();
    assertEquals(limiter.queued, 1);
    limiter.release("a");
    await stays.granted;
    assertEquals(limiter.queued, 0);
  });

  it("passes the slot of an aborted call to the next call", async () => {
    const limiter = limiterOf(10);
    limiter.acquire("a");
    const gone = waits(limiter.acquire("a"));
    const next = waits(limiter.acquire("a"));
    limiter.release("a");
    gone.cancel();
    await next.granted;
    limiter.release("a");
    assertEquals(limiter.acquire("a"), true);
  });
});
