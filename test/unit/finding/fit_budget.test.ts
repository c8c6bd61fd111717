import {
  assert,
  assertEquals,
  assertGreaterOrEqual,
  assertLessOrEqual,
  assertMatch,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { buildToolset, defineTool, type Tool, ToolRegistry, type Toolset } from "../../../mod.ts";
import * as plue from "../../../src/finding/mod.ts";
import { countTokens, fitBudget } from "../../../src/finding/mod.ts";
import { atDetail } from "../../../src/finding/fit_budget.ts";
import * as formats from "../../../src/formats/mod.ts";
import { cases, sample } from "../../support/laws.ts";

// The same cases on every runtime and in every run.
const WORDS = ["file", "mail", "flight", "invoice", "branch", "picture"] as const;

/** A tool whose description, schema and examples have the given number of words. */
function toolOf(name: string, words: number, properties: number, examples: number): Tool {
  return defineTool({
    name,
    description: `Works on a ${name}.${" More is said of it here.".repeat(words)}`,
    parameters: {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: properties }, (_, index) => [
          `argument_${index}`,
          { type: "string", description: "What it works on, in words.", maxLength: 80 },
        ]),
      ),
    },
    examples: Array.from({ length: examples }, () => ({ input: { argument_0: "some words" } })),
  }) as Tool;
}

const catalogue: Toolset = buildToolset(
  WORDS.map((word, index) => toolOf(word, index, index, index % 3)),
);

/** Every way to show some of the tools, with its tokens and its value. */
function* everyWay(
  toolset: Toolset,
  target: formats.TargetName,
  worthOf: (id: string) => number,
): Generator<{ readonly tokens: number; readonly worth: number }> {
  const factors = { full: 1, "no-examples": 0.95, signature: 0.7 };
  const forms = toolset.tools.map((tool) =>
    (Object.keys(factors) as plue.ToolDetail[]).map((detail) => {
      const [wire] = formats.exportTools([atDetail(tool, detail)], target)
        .tools as readonly unknown[];
      return { wire, worth: worthOf(tool.id) * factors[detail] };
    })
  );
  const ways = 4 ** forms.length;
  for (let way = 1; way < ways; way++) {
    const chosen = forms.flatMap((of, index) => of[((way >> (2 * index)) & 3) - 1] ?? []);
    yield {
      tokens: countTokens(JSON.stringify(chosen.map(({ wire }) => wire))),
      worth: chosen.reduce((sum, { worth }) => sum + worth, 0),
    };
  }
}

const OPTIONS: plue.FitBudgetOptions = { tokens: 900, target: "anthropic" };

/** Fits the tools of the tests into a budget for Anthropic. */
const fit = (tokens: number, more: Partial<plue.FitBudgetOptions<"anthropic">> = {}) =>
  fitBudget(catalogue, { tokens, target: "anthropic", ...more });

describe("fitBudget()", () => {
  it("shows every tool in full if the budget allows", () => {
    const { exported, tools, leftOut, tokens } = fit(10_000);
    const inFull = catalogue.ids.map((id) => [id, "full"]);
    assertEquals(tools.map(({ id, detail }) => [id, detail]), inFull);
    assertEquals(exported.tools, formats.exportTools(catalogue, "anthropic").tools);
    assertEquals([leftOut, tokens], [[], countTokens(JSON.stringify(exported.tools))]);
  });

  it("never exceeds its budget, for any target, and repeats the same result", () => {
    for (const { id } of sample(formats.listTargets())) {
      for (const tokens of [150, 222, 333, 555]) {
        const options = { tokens, target: id as formats.TargetName };
        let fitted;
        try {
          fitted = fitBudget(catalogue, options);
        } catch (error) {
          // An OpenAPI document needs more tokens than that without any tool.
          assert(error instanceof RangeError && id.startsWith("openapi"), String(error));
          continue;
        }
        const text = JSON.stringify(fitted.exported.tools);
        assertLessOrEqual(countTokens(text), tokens, id);
        assertEquals(fitted.tokens, countTokens(text));
        assertEquals(JSON.stringify(fitBudget(catalogue, options).exported.tools), text);
        const ids = [...fitted.tools, ...fitted.leftOut].map(({ id }) => id);
        assertEquals(ids.sort(), [...catalogue.ids]);
      }
    }
  });

  it("shows a tool in less detail if that frees tokens for others", () => {
    const { tools, exported } = fit(260);
    const signature = tools.findIndex(({ detail }) => detail === "signature");
    const shown = exported.tools[signature];
    assert(tools.length > 4 && shown !== undefined);
    assertEquals(shown.input_schema, { type: "object" });
    assertMatch(
      shown.description ?? "",
      /^Works on a \w+\.\nArguments, in part: \{ argument_0\?: string/,
    );
  });

  it("names its tools so that calls are decoded to them", () => {
    const { exported, tools } = fitBudget(catalogue, { tokens: 200, target: "openai.chat" });
    assertEquals(exported.names.encodings.map(({ id }) => id), tools.map(({ id }) => id));
  });

  it("shows only tools that match the query", () => {
    const { tools, leftOut } = fit(10_000, { query: "invoice" });
    assertEquals(tools.map(({ id }) => id), ["invoice"]);
    assertEquals(new Set(leftOut.map(({ reason }) => reason)), new Set(["query"]));
    const none = fit(50, { query: "" });
    assertEquals([none.tools, none.exported.tools], [[], []]);
  });

  it("exports all tools a few times only, for any number of tools", () => {
    const many = buildToolset(Array.from({ length: 400 }, (_, n) => toolOf(`t${n}`, n % 9, 2, 0)));
    const exportsOf = (tokens: number): number => {
      let wholes = 0;
      const count = (text: string): number => {
        if (text.startsWith("[")) wholes++;
        return countTokens(text);
      };
      try {
        fitBudget(many, { tokens, target: "anthropic", count });
      } catch (error) {
        assert(error instanceof RangeError, String(error));
      }
      return wholes;
    };
    // With 5 tokens, not even the smallest tool fits.
    for (const tokens of [5, 9_000, 15_000, 30_000]) assertLessOrEqual(exportsOf(tokens), 4);
  });

  it("accepts the ranking of another search", () => {
    const ranked = ["mail", "file"].map((id) => catalogue.get(id) as Tool);
    const shown = (tokens: number): readonly string[] =>
      fitBudget(catalogue.tools, { tokens, ranked, target: "anthropic" }).tools.map(({ id }) => id);
    assertEquals(shown(10_000), ["file", "mail"]);
    assertEquals(shown(55), ["mail"]);
    assertThrows(() => fit(99, { ranked, query: "mail" }), TypeError, "not both");
  });

  it("always shows pinned tools", () => {
    const { tools } = fit(120, { query: "file", pinned: ["picture"] });
    assert(tools.some(({ id }) => id === "picture"));
  });

  it("reports the reason for each omitted tool", () => {
    const { leftOut } = fit(60);
    assert(leftOut.length > 0);
    for (const { id, message } of leftOut) {
      assertMatch(message, RegExp(`^"${id}" is omitted: its \\d+ tokens do not fit`));
    }
  });

  it("omits the tools of the lowest value if the target limits the number of tools", () => {
    const many = buildToolset(Array.from({ length: 130 }, (_, n) => toolOf(`t${n}`, 0, 0, 0)));
    const options = { tokens: 100_000, target: "openai.chat", pinned: ["t99"] } as const;
    const { tools, leftOut } = fitBudget(many, options);
    assertEquals(tools.length, 128);
    assert(tools.some(({ id }) => id === "t99"));
    const why = "is omitted: openai.chat accepts no more tools";
    assertEquals(leftOut, [
      { id: "t97", reason: "target", message: `"t97" ${why}` },
      { id: "t98", reason: "target", message: `"t98" ${why}` },
    ]);
  });

  it("exports few times if a few more tools fit than the target accepts", () => {
    const many = buildToolset(Array.from({ length: 400 }, (_, n) => toolOf(`t${n}`, n % 5, 0, 0)));
    for (const tokens of [4_700, 5_000, 5_400, 6_000]) {
      let exports = 0;
      const count = (text: string): number => {
        // Only the text of a whole export is as long as this.
        if (text.length > 2_000) exports++;
        return countTokens(text);
      };
      fitBudget(many, { tokens, target: "openai.chat", count });
      assertLessOrEqual(exports, 4);
    }
  });

  it("stays within the budget if the counter returns fractions", () => {
    const count = (text: string): number => text.length / 4.3;
    for (const tokens of [80, 101, 150, 200]) {
      const fitted = fitBudget(catalogue, { tokens, target: "openai.chat", count });
      assert(fitted.tools.length > 0 && fitted.leftOut.length > 0);
      assert(Number.isInteger(fitted.tokens) && fitted.tokens <= tokens);
      assert(count(JSON.stringify(fitted.exported.tools)) <= tokens);
    }
  });

  it("reports the tokens of pinned tools, and fits them into exactly that budget", () => {
    for (const pinned of [catalogue.ids.slice(0, 3), []]) {
      const { message } = assertThrows(() => fit(1, { pinned }), RangeError);
      assert(pinned.length === 0 || message.includes("the pinned tools take"), message);
      const least = Number(/ (\d+)$/.exec(message)?.[1]);
      assertEquals(fit(least, { pinned }).tools.length, pinned.length || 1);
      const { message: again } = assertThrows(() => fit(least - 1, { pinned }), RangeError);
      assertEquals(again, message.replace("of 1 ", `of ${least - 1} `));
    }
  });

  it("always shows the tools of a bridge", () => {
    const bridge = plue.createToolBridge(catalogue, { pinned: catalogue.ids.slice(0, 2) });
    const { tools } = fitBudget(bridge, { tokens: 2_000, target: "openai.chat", query: "zzz" });
    assertEquals(tools.map(({ id }) => id), ["call_tool", "describe_tools", "search_tools"]);
  });

  it("sends signatures that accept any arguments in a strict mode", () => {
    for (const target of ["openai.strict", "openai.responses.strict"] as const) {
      const { exported, tools } = fitBudget([toolOf("long", 9, 9, 0)], { tokens: 180, target });
      assertEquals(tools[0]?.detail, "signature");
      const sent = JSON.stringify(exported.tools);
      assert(sent.includes('"parameters":{"type":"object"}') && !sent.includes('"strict":true'));
    }
  });

  it("rejects a pinned tool that the target cannot express", () => {
    const limits = [{ name: "maxTools", value: 0 }] as const;
    const target = formats.defineTarget({ ...formats.targetOf("openai.chat"), id: "none", limits });
    const one = [toolOf("one", 1, 1, 1)];
    const message =
      'Cannot export "one" to none: the limit is 0 tools in one request, and there would be 1';
    const { leftOut } = fitBudget(one, { tokens: 900, target });
    assertEquals(leftOut, [{ id: "one", reason: "target", message }]);
    assertThrows(
      () => fitBudget(one, { tokens: 900, target, pinned: ["one"] }),
      TypeError,
      'the pinned tool "one" cannot be sent: Cannot export "one"',
    );
  });

  const misused: readonly (readonly [string, () => unknown, string])[] = [
    ["a registry", () => fitBudget(new ToolRegistry() as never, OPTIONS), "must be a toolset"],
    ["a list of others", () => fitBudget([1] as never, OPTIONS), "argument must be a toolset"],
    ["options that are null", () => fitBudget(catalogue, null as never), "must be an object"],
    [
      "a wrong id among the pinned",
      () => fit(900, { pinned: ["file", "bad id!"] }),
      '"/pinned/1" must be the id of a tool, not "bad id!"',
    ],
    ["an unknown option", () => fit(9, { max: 1 } as object), '"/max" is not one'],
    ["no budget", () => fit(undefined as never), 'it needs "/tokens"'],
    ["no target", () => fitBudget(catalogue, { tokens: 9 } as never), 'it needs "/target"'],
    ["a pinned tool that is not there", () => fit(9, { pinned: ["x"] }), '"x" is not'],
  ];
  for (const [what, run, message] of misused) {
    it(`rejects ${what}`, () => {
      assertThrows(run, TypeError, message);
    });
  }

  for (const answer of [NaN, -1, undefined, Promise.resolve(1)]) {
    it(`rejects a counter that returns ${String(answer)}`, () => {
      const count = (() => answer) as never;
      assertThrows(() => fit(900, { count }), TypeError, "the counter must return a number");
    });
  }

  it("reports the tokens of the smallest tool if none fits", () => {
    const { message } = assertThrows(() => fit(12), RangeError, "the smallest tool,");
    const [, id, least] = /smallest tool, "(\w+)", takes (\d+)/.exec(message) ?? [];
    assertEquals(fit(Number(least)).tools.map((tool) => tool.id), [id]);
  });

  // 1,000 cases in parts with their own seeds, so that no test takes long on a slow machine.
  for (let part = 0; part < 10; part++) {
    it(`has at least 0.99 of the value of the best choice (part ${part})`, () => {
      const tools = fc.array(fc.tuple(fc.nat(4), fc.nat(4), fc.nat(2)), {
        minLength: 1,
        maxLength: 3,
      }).map((sizes) =>
        new ToolRegistry({
          tools: sizes.map(([words, properties, examples], index) =>
            toolOf(WORDS[index] ?? "", words, properties, examples)
          ),
        }).select()
      );
      fc.assert(
        fc.property(tools, fc.integer({ min: 60, max: 500 }), (toolset, tokens) => {
          let best = 0;
          for (const way of everyWay(toolset, "anthropic", () => 1)) {
            if (way.tokens <= tokens && way.worth > best) best = way.worth;
          }
          const factors = { full: 1, "no-examples": 0.95, signature: 0.7 };
          const fitted = fitBudget(toolset, { tokens, target: "anthropic" });
          const worth = fitted.tools.reduce((sum, { detail }) => sum + factors[detail], 0);
          assertLessOrEqual(fitted.tokens, tokens);
          assertGreaterOrEqual(worth, 0.99 * best);
        }),
        cases(100, 20261122 + part),
      );
    });
  }
});
