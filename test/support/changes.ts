/** The changes of a registry, one after the other, for tests that wait for them. */

import type { Registry, ToolChange } from "../../src/registry/mod.ts";

/** Collects the changes from now on. `next` waits for the next change. */
export function followChanges(registry: Registry): { next(): Promise<ToolChange> } {
  const unread: ToolChange[] = [];
  let wake = (): void => {};
  registry.subscribe((change) => {
    unread.push(change);
    wake();
  });
  return {
    async next() {
      for (;;) {
        const change = unread.shift();
        if (change !== undefined) return change;
        await new Promise<void>((resolve) => wake = resolve);
      }
    },
  };
}
