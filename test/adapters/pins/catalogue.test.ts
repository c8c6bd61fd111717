import { describe, it } from "bun:test";
import { holdsBackChanges, letsOrdersIn } from "./catalogue_laws.ts";
import type { ListedTool } from "./mutate.ts";
import data from "./catalogue.json" with { type: "json" };

/** Tools with every field that MCP has, and the forms of schemas that servers use. */
const CATALOGUE: readonly ListedTool[] = data.tools as never;

describe("toolPins() and a catalogue", () => {
  it("holds back each of 500 changes", () => holdsBackChanges(CATALOGUE));

  it("holds back none of 500 orders that mean the same", () => letsOrdersIn(CATALOGUE));
});
