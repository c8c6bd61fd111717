import { describe, it } from "bun:test";
import { holdsBackChanges, letsOrdersIn } from "./catalogue_laws.ts";
import type { ListedTool } from "./mutate.ts";
import data from "./catalogue.json" with { type: "json" };

/** Tools with every field that MCP has, and the forms of schemas that servers use. */
const CATALOGUE: readonly ListedTool[] = data.tools as never;

describe("toolPins() and a catalogue", () => {
  it("holds back every changed tool", () => holdsBackChanges(CATALOGUE));

  it("holds back no tool whose lists have another order", () => letsOrdersIn(CATALOGUE));
});
