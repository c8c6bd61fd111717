import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { broken, messageOf, outcome, single, standardSchema } from "./support.ts";

const CITY = {
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer", maximum: 9 } },
    required: ["city"],
    additionalProperties: false,
  },
  execute: (params: unknown) => params,
} as const;

const ANY = { execute: (params: unknown) => params } as const;
const DEEP = `{"a":${"[".repeat(400)}${"]".repeat(400)}}`;
const LONG = "x".repeat(20_000_000);
const LARGE = "its arguments are larger than 1048576 bytes of JSON";
const CYCLE: Record<string, unknown> = {};
CYCLE["self"] = CYCLE;

describe("the arguments of a call", () => {
  it("may be a JSON string or a value", async () => {
    const { call } = single(CITY);
    assertEquals(outcome(await call('{"city":"Oslo"}')), { city: "Oslo" });
    assertEquals(outcome(await call({ city: "Oslo" })), { city: "Oslo" });
  });

  it("are empty in every form that models send", async () => {
    const { call } = single(ANY);
    for (const nothing of [undefined, null, "", "  \n", "null", "{}"]) {
      assertEquals(outcome(await call(nothing)), {});
    }
  });

  for (
    const [what, tool, input, why] of [
      ["missing", CITY, [""], "its arguments do not fit: "],
      ["of another type", CITY, ["[]", "1", '"{}"', [], 1, true], "its arguments do not fit: "],
      ["text that is not JSON", CITY, ['{"city": Oslo}'], "its arguments are not JSON"],
      ["too deep", ANY, [DEEP, JSON.parse(DEEP), CYCLE], "deeper than 256 levels"],
      ["not JSON", ANY, [{ list: [1, 2n] }], '"/list/1" is a bigint, which is not JSON'],
      ["20 MB long", ANY, [`"${LONG}`, { LONG }, Array(11_000_000).fill(0)], LARGE],
    ] as const
  ) {
    it(`are rejected if they are ${what}`, async () => {
      for (const args of input) {
        const result = await single(tool).call(args);
        assertEquals(outcome(result), "invalid_arguments");
        assertStringIncludes(messageOf(result), why);
        // The message does not repeat the text of the arguments.
        assert(messageOf(result).length < 400);
      }
    });
  }

  it("take a bounded number of steps to check, in any form", async () => {
    const parameters = {
      type: "object",
      properties: { ids: { allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) } },
    };
    const { call } = single({ ...ANY, parameters });
    const ids = Array.from({ length: 20_000 }, (_, id) => id);
    for (const input of [{ ids }, JSON.stringify({ ids })]) {
      const result = await call(input);
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), "takes more than 2500000 steps");
    }
    assertEquals(outcome(await call({ ids: [1, 2] })), { ids: [1, 2] });
  });

  it("contain no number above the largest one, as text or as a value", async () => {
    const { call } = single(ANY);
    const digits = "9".repeat(309);
    for (const number of ["1e999", "-1e+0309", "1E309", digits, `${"9".repeat(250)}e99`]) {
      const text = `{"a":[${number}]}`;
      const refused = await call(text);
      assertEquals(outcome(refused), "invalid_arguments");
      assertEquals(messageOf(refused), messageOf(await call(JSON.parse(text))));
    }
    assertEquals(outcome(await call('{"a":1e308,"b":"1e999","c":1e-999}')), {
      ...{ a: 1e308, b: "1e999", c: 0 },
    });
  });

  it("are missing if they are under a provider's field name that was not decoded", async () => {
    const { dispatcher } = single(CITY);
    for (const name of ["input", "args", "parameters", "params"]) {
      const result = await dispatcher.dispatch({ name: "t", [name]: { city: "Oslo" } });
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), "city");
    }
  });

  it("have at most eight issues", async () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`x${n}`, n]));
    const result = await single(CITY).call({ city: 1, days: 99, ...many });
    assert(!result.ok && result.error.issues !== undefined);
    assert(result.error.issues.length >= 2 && result.error.issues.length <= 8);
    assertStringIncludes(result.error.message, "/city");
  });

  it("are measured in bytes", async () => {
    const { call } = single(ANY, { maxArgumentBytes: 20 });
    assertEquals(outcome(await call('{"a":"xxxxxxxxxxxx"}')), { a: "xxxxxxxxxxxx" });
    assertEquals(outcome(await call('{"a":"€€€€€"}')), "invalid_arguments");
    assertEquals(outcome(await call({ a: "€€€€€" })), "invalid_arguments");
  });

  it("may name __proto__, which is a property like any other", async () => {
    const text = '{"__proto__":{"admin":true},"city":"Oslo"}';
    const open = await single(ANY).call(text);
    assert(open.ok);
    assertEquals(JSON.stringify(open.content), text);
    assertEquals((open.content as { admin?: unknown }).admin, undefined);
    assertEquals(({} as { admin?: unknown }).admin, undefined);
    assertEquals(outcome(await single(CITY).call(text)), "invalid_arguments");
  });

  it("are converted by a library's schema, synchronously or later", async () => {
    for (const later of [false, true]) {
      const parameters = standardSchema((value) => {
        const { n } = value as { readonly n?: unknown };
        const answer = typeof n === "string"
          ? { value: { n: Number(n), unit: "m" } }
          : { issues: [{ message: "n must be text", path: ["n"] }] };
        return later ? Promise.resolve(answer) : answer;
      }, { type: "object", properties: { n: { type: "string" } } });
      const { call } = single({ parameters, execute: (params) => params });
      assertEquals(outcome(await call('{"n":"4"}')), { n: 4, unit: "m" });
      assertEquals(
        messageOf(await call('{"n":4}')),
        'Cannot call "t": its arguments do not fit: /n: n must be text',
      );
    }
  });
});

describe("rules for the arguments", () => {
  const OSLO = { city: "Oslo" };

  it("run after the schema, the tool's own first", async () => {
    const seen: unknown[] = [];
    const { call } = single({ ...CITY, validate: (params) => void seen.push(["own", params]) }, {
      validators: [
        ({ tool, arguments: params }) => void seen.push([tool.id, params]),
        async () => void seen.push(await Promise.resolve("last")),
      ],
    });
    await call({});
    assertEquals(seen, []);
    await call(OSLO);
    assertEquals(seen, [["own", OSLO], ["t", OSLO], "last"]);
  });

  it("reject with a message or with issues", async () => {
    const issue = { path: "/city", keyword: "custom", expected: "a town", message: "/city: no" };
    for (const answer of ["/city: no", [issue]]) {
      for (const returned of [answer, Promise.resolve(answer)]) {
        const worlds = [
          single({ ...CITY, validate: () => returned }),
          single(CITY, { validators: [() => returned] }),
        ];
        for (const { call } of worlds) {
          const result = await call(OSLO);
          assert(!result.ok);
          const { code, message, issues } = result.error;
          assertEquals([code, message, issues?.[0]?.keyword], [
            "invalid_arguments",
            'Cannot call "t": its arguments break a rule: /city: no',
            "custom",
          ]);
        }
      }
    }
  });

  it("pass with nothing, an empty sentence or no issues", async () => {
    for (const answer of [undefined, "", []]) {
      assertEquals(outcome(await single({ ...CITY, validate: () => answer }).call(OSLO)), OSLO);
    }
  });

  it("report at most eight issues, with bounded texts", async () => {
    const odd = [null, 1, "text", { message: 5 }, { message: "x".repeat(9_999) }, {}, {}, {}, {}];
    const result = await single({ ...CITY, validate: () => odd as never }).call(OSLO);
    assert(!result.ok);
    assertEquals(result.error.issues?.length, 8);
    assert(result.error.message.length < 2_200);
  });

  it("reject if they throw or return an invalid value", async () => {
    for (
      const [tool, validators, code] of [
        [{ validate: broken }, [], "threw"],
        [{ validate: async () => await broken() }, [], "threw"],
        [{ validate: () => false as never }, [], "denied"],
        [{}, [broken], "denied"],
        [{}, [() => ({}) as never], "denied"],
      ] as const
    ) {
      let runs = 0;
      const { call } = single({ ...tool, execute: () => ++runs }, { validators });
      assertEquals([outcome(await call()), runs], [code, 0]);
    }
  });
});

describe("the arguments that were validated", () => {
  const parameters = {
    type: "object",
    properties: { path: { const: "ok" } },
    required: ["path"],
  } as const;

  const tool = { parameters, requiresApproval: true, execute: (params: unknown) => params };

  it("reach the tool unchanged, even if the caller modifies its object meanwhile", async () => {
    const mine = { path: "ok" };
    const { call } = single(tool, { approve: () => (mine.path = "evil", true) });
    assertEquals(outcome(await call(mine)), { path: "ok" });
  });

  it("cannot be changed by an approver", async () => {
    const { call } = single(tool, {
      approve: (info) => ((info.arguments as { path: string }).path = "evil", true),
    });
    assertEquals(outcome(await call('{"path":"ok"}')), "denied");
  });

  it("belong to the tool, which may change them", async () => {
    const { call } = single((params) => (params as { list: number[] }).list.sort() as never);
    const mine = { list: [2, 1] };
    assertEquals(outcome(await call(mine)), [1, 2]);
    assertEquals(mine.list, [2, 1]);
  });
});
