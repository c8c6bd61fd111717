import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, type Tool } from "../../../mod.ts";
import { countTokens, measureTokens } from "../../../src/finding/mod.ts";
import { exportTools, listTargets, type TargetName } from "../../../src/formats/mod.ts";

describe("countTokens()", () => {
  // Each text with its count by o200k and the allowed error.
  const texts: readonly (readonly [string, real: number, error: number])[] = [
    ["", 0, 0],
    ["The quick brown fox jumps over the lazy dog.", 10, 0.1],
    ["Быстрая коричневая лиса прыгает через ленивую собаку", 19, 0.2],
    ["الثعلب البني السريع يقفز فوق الكلب الكسول", 15, 0.2],
    ["素早い茶色の狐がのろまな犬を飛び越える", 18, 0.3],
    ["빠른 갈색 여우가 게으른 개를 뛰어넘는다", 16, 0.3],
  ];
  for (const [text, real, error] of texts) {
    it(`counts ${JSON.stringify(text.slice(0, 20))} to within ${error * 100} %`, () => {
      assert(Math.abs(countTokens(text) - real) <= real * error, `${countTokens(text)}`);
    });
  }

  it("reads long runs of one kind", () => {
    // If a run were read again from each of its characters, this would take hours.
    for (const part of ["A", "a", "文", " ", "\n", "=", "aA", "A文", "{", "1"]) {
      assert(countTokens(part.repeat(200_000)) > 0, part);
    }
  });
});

describe("measureTokens()", () => {
  const tools = ["ping", "pong"].map((name): Tool =>
    defineTool({ namespace: "net", name, description: "Answers." })
  );

  it("measures the whole and each tool, with any counter", () => {
    const exported = exportTools(tools, "anthropic");
    const measured = measureTokens(exported, (text) => text.length);
    assertEquals(measured, {
      total: JSON.stringify(exported.tools).length,
      tools: exported.tools.map((tool, index) => ({
        id: tools[index]?.id ?? "",
        tokens: JSON.stringify(tool).length,
      })),
    });
  });

  it("measures the tools of every target", () => {
    for (const { id } of listTargets()) {
      const { total, tools: measured } = measureTokens(exportTools(tools, id as TargetName));
      assertEquals(measured.map(({ id }) => id), ["net:ping", "net:pong"]);
      assert(measured.every(({ tokens }) => tokens > 5 && tokens < total), id);
    }
  });

  it("rejects an invalid export", () => {
    assertThrows(() => measureTokens({} as never), TypeError, "a result of exportTools");
  });
});
