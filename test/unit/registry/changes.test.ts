import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolChange } from "../../../src/registry/mod.ts";
import { FakeClock } from "../../support/waiting.ts";
import { fakeRegistry, fakeTool } from "./fakes.ts";

function describeChange({ type, tool }: ToolChange): string {
  return `${type} ${tool.id}`;
}

describe("ToolChange", () => {
  const tool = fakeTool("a");

  it("is frozen, and has the passed time", () => {
    const change = ToolChange.added(tool, { timestamp: 5 });
    assertEquals(change, { type: "added", tool, timestamp: 5 });
    assert(Object.isFrozen(change));
  });

  it("contains the tool that an update replaced", () => {
    const previous = fakeTool("a");
    assertStrictEquals(ToolChange.updated(tool, { previous }).previous, previous);
  });
});

describe("ToolRegistry.subscribe()", () => {
  it("notifies of every kind of change, with the tool and the time", () => {
    const clock = new FakeClock();
    const timestamp = clock.timestamp();
    const registry = fakeRegistry({ clock });
    const changes: ToolChange[] = [];
    registry.subscribe((change) => changes.push(change));
    const first = registry.registerTool(fakeTool("a"));
    clock.advance(1);
    const second = registry.updateTool(fakeTool("a"));
    clock.advance(1);
    registry.unregisterTool("a");
    assertEquals(changes, [
      { type: "added", tool: first, timestamp },
      { type: "updated", tool: second, previous: first, timestamp: timestamp + 1 },
      { type: "removed", tool: second, timestamp: timestamp + 2 },
    ]);
    assertStrictEquals(changes[1]?.previous, first);
    assert(changes.every(Object.isFrozen));
  });

  for (const listener of [{}, undefined, "added"]) {
    it(`rejects a listener that is ${typeof listener}`, () => {
      assertThrows(
        () => fakeRegistry().subscribe(listener as never),
        TypeError,
        "Cannot subscribe to a registry: the listener must be a function, not",
      );
    });
  }

  it("notifies after the change, before its method returns", () => {
    const registry = fakeRegistry();
    let seen: readonly string[] = [];
    registry.subscribe(() => seen = registry.ids);
    registry.registerTool(fakeTool("a"));
    assertEquals(seen, ["a"]);
  });

  it("does not notify if nothing changed", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    const changes: string[] = [];
    registry.subscribe((change) => changes.push(describeChange(change)));
    registry.tryRegisterTool(fakeTool("a"));
    registry.unregisterTool("b");
    assertEquals(changes, []);
  });

  it("stops notifying an unsubscribed listener, even if it unsubscribes twice", () => {
    const registry = fakeRegistry();
    const changes: string[] = [];
    const listener = (change: ToolChange) => changes.push(describeChange(change));
    const stop = registry.subscribe(listener);
    registry.subscribe(listener);
    registry.registerTool(fakeTool("a"));
    stop();
    stop();
    registry.registerTool(fakeTool("b"));
    assertEquals(changes, ["added a", "added a", "added b"]);
  });

  it("continues when a listener throws, and reports the error", () => {
    const errors: unknown[] = [];
    const registry = fakeRegistry({ onError: (error) => errors.push(error) });
    const seen: string[] = [];
    registry.subscribe(() => {
      throw "not even an error";
    });
    registry.subscribe((change) => seen.push(describeChange(change)));
    registry.registerTool(fakeTool("a"));
    assertEquals([seen, errors], [
      ["added a"],
      [{ phase: "listener", toolId: "a", error: "not even an error" }],
    ]);
    assert(registry.hasTool("a"));
  });

  it("continues when `onError` throws too", () => {
    const registry = fakeRegistry({
      onError: () => {
        throw new Error("The log is full");
      },
    });
    registry.subscribe(() => {
      throw new Error("No");
    });
    assertEquals(registry.registerTool(fakeTool("a")).id, "a");
  });

  it("has the same order for all listeners, even if a listener changes the registry", () => {
    const registry = fakeRegistry();
    const first: string[] = [];
    const second: string[] = [];
    registry.subscribe((change) => {
      first.push(describeChange(change));
      if (change.tool.id === "a") {
        registry.registerTool(fakeTool("b"));
        registry.unregisterTool("b");
        // The registry has changed already; the listeners are notified later, in order.
        assertEquals(registry.ids, ["a"]);
      }
    });
    registry.subscribe((change) => second.push(describeChange(change)));
    registry.registerTool(fakeTool("a"));
    assertEquals(first, ["added a", "added b", "removed b"]);
    assertEquals(second, first);
  });

  it("does not notify a new subscriber of earlier changes", () => {
    const registry = fakeRegistry();
    const late: string[] = [];
    let subscribed = false;
    registry.subscribe(() => {
      if (subscribed) return;
      subscribed = true;
      registry.registerTool(fakeTool("b"));
      registry.subscribe((change) => late.push(describeChange(change)));
      registry.registerTool(fakeTool("c"));
    });
    registry.registerTool(fakeTool("a"));
    assertEquals(late, ["added c"]);
  });

  it("does not notify a listener that another listener unsubscribed meanwhile", () => {
    const registry = fakeRegistry();
    const seen: string[] = [];
    registry.subscribe(() => stop());
    const stop = registry.subscribe((change) => seen.push(describeChange(change)));
    registry.registerTool(fakeTool("a"));
    assertEquals(seen, []);
  });

  it("notifies of the tools that the registry's end removes, the last registered first", async () => {
    const registry = fakeRegistry({ tools: [fakeTool("a"), fakeTool("b")] });
    const changes: string[] = [];
    registry.subscribe((change) => changes.push(describeChange(change)));
    await registry.dispose();
    assertEquals(changes, ["removed b", "removed a"]);
  });

  it("notifies no listener after the end", async () => {
    const registry = fakeRegistry();
    await registry.dispose();
    let ends = 0;
    const stop = registry.subscribe(() => {}, () => ends++);
    assertEquals([stop(), ends], [undefined, 1]);
  });

  it("calls onEnd once, after the last change", async () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    const seen: string[] = [];
    registry.subscribe((change) => seen.push(describeChange(change)), () => seen.push("end"));
    await registry.dispose();
    await registry.dispose();
    assertEquals(seen, ["removed a", "end"]);
  });

  it("calls onEnd after the last changes when a listener ends the registry", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    const seen: string[] = [];
    registry.subscribe(({ type }) => {
      if (type === "added") registry.dispose();
    });
    registry.subscribe((change) => seen.push(describeChange(change)), () => seen.push("end"));
    registry.registerTool(fakeTool("b"));
    assertEquals(seen, ["added b", "removed b", "removed a", "end"]);
  });

  it("does not call the onEnd of a subscription that has ended", async () => {
    const registry = fakeRegistry();
    let ends = 0;
    registry.subscribe(() => {}, () => ends++)();
    await registry.dispose();
    assertEquals(ends, 0);
  });
});
