import { assertEquals } from "@std/assert";
import { buildToolset, ToolRegistry } from "@plue/tools";
import { createToolHandler } from "@plue/tools/hono";
import { describe, it } from "bun:test";
import { BASE, handler, sampleRegistry } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

interface Explained {
  readonly id: string;
  readonly available: boolean;
}

describe("GET /explain", () => {
  it("explains the served tools only", async () => {
    const served = createToolHandler(
      buildToolset(sampleRegistry(), { maxRisk: "low", role: null }),
      { openExplain: true },
    );
    const response = await served.request(`${BASE}/explain?role=control`);
    const { tools } = await response.json();
    assertEquals(tools.map(({ id, available }: Explained) => [id, available]), [
      ["echo", true],
      ["plan", true],
      ["secrets", true],
    ]);
  });

  it("names the tools that are unavailable now", async () => {
    const registry = new ToolRegistry({
      tools: [toolOf("absent", undefined, { isAvailable: () => false })],
    });
    const response = await createToolHandler(registry).request(`${BASE}/explain`);
    const [absent] = (await response.json()).tools;
    assertEquals([absent.selected, absent.available], [true, false]);
  });
});

describe("GET /tools/:id/explain", () => {
  it("takes the query of a listing", async () => {
    const open = handler({ openExplain: true });
    const seen = await open.request(`${BASE}/tools/task:approve/explain?role=control`);
    const { available, steps } = await seen.json() as {
      readonly available: boolean;
      readonly steps: readonly { readonly step: string; readonly passed: boolean }[];
    };
    assertEquals(available, true);
    assertEquals(steps.find(({ step }) => step === "role")?.passed, true);
  });
});
