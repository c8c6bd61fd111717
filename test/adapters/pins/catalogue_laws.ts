/** Properties of pins that hold for every catalogue of tools. */

import { importTools } from "@plue/tools/formats";
import { toolPins } from "@plue/tools/pins";
import { assertEquals } from "@std/assert";
import { cases } from "../../support/laws.ts";
import { type ListedTool, mutated, randomFrom, reordered } from "./mutate.ts";

/** The number of rounds: 500 on Bun, and a tenth of that, with another seed, on other runtimes. */
const { numRuns: ROUNDS, seed: SEED } = cases(500);
/** The number of tools that change together. */
const BATCH = 40;
/** The number of tools that are compared together. */
const PART = 3;

/** Pins that have approved a catalogue. */
async function approvedPins(catalogue: readonly ListedTool[]) {
  const pins = toolPins();
  const first = await importTools("mcp", catalogue, { namespace: "x", pins });
  assertEquals([first.tools.length, first.held], [catalogue.length, []]);
  return pins;
}

/** Checks that each of many changes is held back, and that no other tool is. */
export async function holdsBackChanges(catalogue: readonly ListedTool[]): Promise<void> {
  const pins = await approvedPins(catalogue);
  const random = randomFrom(SEED);
  const wrong: string[] = [];
  for (let done = 0; done < ROUNDS;) {
    // Many tools change together, so that fewer imports are needed.
    const start = Math.floor(random() * catalogue.length);
    const changed = new Map<string, string>();
    const list = catalogue.map((tool, index) => {
      if ((index + start) % catalogue.length >= BATCH) return tool;
      const change = mutated(tool, random);
      changed.set(`x:${tool.name}`, change.what);
      return change.tool;
    });
    const { tools, held } = await importTools("mcp", list, { namespace: "x", pins });
    const open = new Set(tools.map(({ id }) => id));
    const closed = new Set(held.map(({ id }) => id));
    for (const [id, what] of changed) {
      if (open.has(id) || !closed.has(id)) wrong.push(`${id} ${what}`);
    }
    if (tools.length !== catalogue.length - changed.size) wrong.push(`${tools.length} tools`);
    done += changed.size;
  }
  assertEquals(wrong, []);
}

/** Checks that no list in another order is held back. */
export async function letsOrdersIn(catalogue: readonly ListedTool[]): Promise<void> {
  const random = randomFrom(SEED + 1);
  const wrong: string[] = [];
  const ORDERS = 25;
  for (let done = 0; done < ROUNDS; done += ORDERS) {
    const start = Math.floor(random() * Math.max(1, catalogue.length - PART));
    const part = catalogue.slice(start, start + PART);
    const pins = await approvedPins(part);
    for (let order = 0; order < ORDERS; order++) {
      const list = reordered(part, random);
      const { tools, held } = await importTools("mcp", list, { namespace: "x", pins });
      wrong.push(...held.map(({ id, changes }) => `${id} ${changes[0]?.path}`));
      if (tools.length !== part.length) wrong.push(`${tools.length} tools`);
    }
  }
  assertEquals(wrong, []);
}
