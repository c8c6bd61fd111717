import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { readFileSync } from "node:fs";
import { drawPanels, measurePanel, PICTURE, readPanels } from "../../bench/recall_tokens.ts";
import { maybe } from "../support/skip.ts";

// The two catalogues of the picture. They are measured here, because a test has a time limit.
const sets = readPanels();
const panels = await Promise.all(sets.length === 2 ? sets.map(measurePanel) : []);

describe("docs/recall_tokens.svg", () => {
  const withData = maybe(sets.length === 2, "../shared/data is not there");
  withData("matches the measurement (otherwise run: bun bench/recall_tokens.ts)", () => {
    assertEquals(drawPanels(panels), readFileSync(PICTURE, "utf8"));
  });

  withData("shows that the bridge needs fewer tokens for the tools of a search", () => {
    for (const { ways } of panels) {
      const [search, , bridge] = ways;
      assertEquals(
        search?.points.map(({ recall }) => recall),
        bridge?.points.map(({ recall }) => recall),
      );
      const most = [search, bridge].map((way) => way?.points.at(-1)?.tokens ?? 0);
      assertEquals((most[1] ?? 0) < (most[0] ?? 0) / 2, true);
    }
  });

  it("has a line for a way with several points, and follows the reader's choice of colours", () => {
    const picture = drawPanels([{
      title: "2 tools",
      ways: [
        { name: "some", points: [{ tokens: 50, recall: 0 }, { tokens: 100_000, recall: 1 }] },
        { name: "all", points: [{ tokens: 100_000, recall: 1 }] },
      ],
    }]);
    assertStringIncludes(picture, 'points="56,256 720,44"');
    assertEquals(picture.split("<polyline").length, 2);
    assertStringIncludes(picture, "prefers-color-scheme: dark");
  });
});
