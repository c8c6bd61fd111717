import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { StandardSchema } from "../../../mod.ts";
import { fixture, messageOf, outcome, single } from "./support.ts";

const CITY = {
  name: "weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer", maximum: 9 } },
    required: ["city"],
    additionalProperties: false,
  },
  execute: (params: unknown) => params,
} as const;

const ANY = { name: "any", execute: (params: unknown) => params } as const;

describe("the arguments of a call", () => {
  it("may be a JSON string or a value", async () => {
    const { call } = fixture([CITY]);
    assertEquals(outcome(await call("weather", '{"city":"Oslo"}')), { city: "Oslo" });
    assertEquals(outcome(await call("weather", { city: "Oslo" })), { city: "Oslo" });
  });

  it("are empty in every form that models send", async () => {
    const { call } = fixture([ANY]);
    for (const nothing of [undefined, null, "", "  \n", "null", "{}"]) {
      assertEquals(outcome(await call("any", nothing)), {});
    }
  });

  it("take a bounded number of steps to check, however they are given", async () => {
    const parameters = {
      type: "object",
      properties: { ids: { allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) } },
    };
    const { call } = fixture([{ ...ANY, parameters }]);
    const ids = Array.from({ length: 20_000 }, (_, id) => id);
    for (const given of [{ ids }, JSON.stringify({ ids })]) {
      const result = await call("any", given);
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), "takes more than 2500000 steps");
    }
    assertEquals(outcome(await call("any", { ids: [1, 2] })), { ids: [1, 2] });
  });

  it("hold no number above the largest one, as a text no more than as a value", async () => {
    const { call } = fixture([ANY]);
    const digits = "9".repeat(309);
    for (const number of ["1e999", "-1e+0309", "1E309", digits, `${"9".repeat(250)}e99`]) {
      const text = `{"a":[${number}]}`;
      const refused = await call("any", text);
      assertEquals(outcome(refused), "invalid_arguments");
      assertEquals(messageOf(refused), messageOf(await call("any", JSON.parse(text))));
    }
    assertEquals(outcome(await call("any", '{"a":1e308,"b":"1e999","c":1e-999}')), {
      a: 1e308,
      b: "1e999",
      c: 0,
    });
  });

  it("are missing if they are under a provider's field name that was not decoded", async () => {
    const { dispatcher } = fixture([CITY]);
    for (const name of ["input", "args", "parameters", "params"]) {
      const result = await dispatcher.dispatch({ name: "weather", [name]: { city: "Oslo" } });
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), "city");
    }
  });

  it("are rejected with the missing properties if there are none", async () => {
    const result = await fixture([CITY]).call("weather", "");
    assertEquals(outcome(result), "invalid_arguments");
    assertStringIncludes(messageOf(result), 'Cannot call "weather": its arguments do not fit: ');
    assertStringIncludes(messageOf(result), "city");
    assertEquals(!result.ok && result.error.issues?.length, 1);
  });

  it("are rejected when the text is not JSON, without repeating the text", async () => {
    const result = await fixture([CITY]).call("weather", '{"city": Oslo}');
    assertEquals(outcome(result), "invalid_arguments");
    assertEquals(messageOf(result), 'Cannot call "weather": its arguments are not JSON');
  });

  it("return at most eight issues", async () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`x${n}`, n]));
    const result = await fixture([CITY]).call("weather", { city: 1, days: 99, ...many });
    assert(!result.ok && result.error.issues !== undefined);
    assert(result.error.issues.length >= 2 && result.error.issues.length <= 8);
    assertStringIncludes(result.error.message, "/city");
  });

  it("are rejected without being parsed when they are 20 MB long", async () => {
    const { call } = fixture([ANY]);
    const text = `"${"x".repeat(20_000_000)}`;
    const refused = await call("any", text);
    assertEquals(
      messageOf(refused),
      'Cannot call "any": its arguments are larger than 1048576 bytes of JSON',
    );
    assertEquals(outcome(await call("any", { text })), "invalid_arguments");
    assertEquals(outcome(await call("any", Array(11_000_000).fill(0))), "invalid_arguments");
  });

  it("are measured in bytes", async () => {
    const { call } = fixture([ANY], { maxArgumentBytes: 20 });
    assertEquals(outcome(await call("any", '{"a":"xxxxxxxxxxxx"}')), { a: "xxxxxxxxxxxx" });
    assertEquals(outcome(await call("any", '{"a":"€€€€€"}')), "invalid_arguments");
    assertEquals(outcome(await call("any", { a: "€€€€€" })), "invalid_arguments");
  });

  it("are rejected when they are too deep, as text and as a value", async () => {
    const { call } = fixture([ANY]);
    const text = `{"a":${"[".repeat(400)}${"]".repeat(400)}}`;
    for (const deep of [text, JSON.parse(text)]) {
      const result = await call("any", deep);
      assertEquals(outcome(result), "invalid_arguments");
      assertStringIncludes(messageOf(result), "deeper than 256 levels");
    }
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    assertEquals(outcome(await call("any", cycle)), "invalid_arguments");
  });

  it("are rejected when the value is not JSON", async () => {
    const result = await fixture([ANY]).call("any", { list: [1, 2n] });
    assertEquals(
      messageOf(result),
      'Cannot call "any": its arguments are not JSON: "/list/1" is a bigint, which is not JSON',
    );
  });

  it("may name __proto__, which is a property as any other", async () => {
    const text = '{"__proto__":{"admin":true},"city":"Oslo"}';
    const { call } = fixture([CITY, ANY]);
    const open = await call("any", text);
    assert(open.ok);
    assertEquals(JSON.stringify(open.content), text);
    assertEquals((open.content as { admin?: unknown }).admin, undefined);
    assertEquals(({} as { admin?: unknown }).admin, undefined);
    assertEquals(outcome(await call("weather", text)), "invalid_arguments");
  });

  it("may have the wrong type", async () => {
    const { call } = fixture([CITY]);
    for (const odd of ["[]", "1", '"{}"', [], 1, true]) {
      assertEquals(outcome(await call("weather", odd)), "invalid_arguments");
    }
  });
});

/** A library's schema: takes a number as text, adds a default; may answer later. */
function librarySchema(later: boolean): StandardSchema {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => {
        const { n } = value as { readonly n?: unknown };
        const answer = typeof n === "string"
          ? { value: { n: Number(n), unit: "m" } }
          : { issues: [{ message: "n must be text", path: ["n"] }] };
        return later ? Promise.resolve(answer) : answer;
      },
      jsonSchema: {
        input: () => ({ type: "object", properties: { n: { type: "string" } } }),
        output: () => ({ type: "object" }),
      },
    },
  };
}

describe("the arguments of a tool with a library's schema", () => {
  it("are what the library makes of them", async () => {
    for (const later of [false, true]) {
      const { call } = single({ parameters: librarySchema(later), execute: (params) => params });
      assertEquals(outcome(await call('{"n":"4"}')), { n: 4, unit: "m" });
      const wrong = await call('{"n":4}');
      assertEquals(
        messageOf(wrong),
        'Cannot call "t": its arguments do not fit: /n: n must be text',
      );
    }
  });
});

describe("rules for the arguments", () => {
  it("run after the schema, the tool's own first", async () => {
    const seen: unknown[] = [];
    const { call } = fixture(
      [{
        ...CITY,
        validate: (params) => {
          seen.push(["own", params]);
        },
      }],
      {
        validators: [
          ({ tool, arguments: params }) => void seen.push([tool.id, params]),
          async () => void seen.push(await Promise.resolve("last")),
        ],
      },
    );
    await call("weather", {});
    assertEquals(seen, []);
    await call("weather", { city: "Oslo" });
    assertEquals(seen, [["own", { city: "Oslo" }], ["weather", { city: "Oslo" }], "last"]);
  });

  it("reject with a message or with issues", async () => {
    const issue = { path: "/city", keyword: "custom", expected: "a town", message: "/city: no" };
    for (const answer of ["/city: no", [issue]]) {
      for (const later of [false, true]) {
        const said = later ? Promise.resolve(answer) : answer;
        const own = await fixture([{ ...CITY, validate: () => said }]).call(
          "weather",
          { city: "Atlantis" },
        );
        const common = await fixture([CITY], { validators: [() => said] }).call(
          "weather",
          { city: "Atlantis" },
        );
        for (const result of [own, common]) {
          assertEquals(outcome(result), "invalid_arguments");
          assertEquals(
            messageOf(result),
            'Cannot call "weather": its arguments break a rule: /city: no',
          );
          assertEquals(!result.ok && result.error.issues?.[0]?.keyword, "custom");
        }
      }
    }
  });

  it("pass with nothing, an empty sentence or no issues", async () => {
    for (const answer of [undefined, "", []]) {
      const { call } = fixture([{ ...CITY, validate: () => answer }]);
      assertEquals(outcome(await call("weather", { city: "Oslo" })), { city: "Oslo" });
    }
  });

  it("report at most eight issues, made harmless", async () => {
    const odd = [null, 1, "text", { message: 5 }, { message: "x".repeat(9_999) }, {}, {}, {}, {}];
    const { call } = fixture([{ ...CITY, validate: () => odd as never }]);
    const result = await call("weather", { city: "Oslo" });
    assert(!result.ok);
    assertEquals(result.error.issues?.length, 8);
    assert(result.error.message.length < 2_200);
  });

  it("reject when they throw or return an invalid value", async () => {
    const thrown = (): never => {
      throw new Error("broken");
    };
    const rows: readonly (readonly [unknown, unknown, string])[] = [
      [thrown, undefined, "threw"],
      [() => Promise.reject(new Error("broken")), undefined, "threw"],
      [() => false, undefined, "denied"],
      [undefined, thrown, "denied"],
      [undefined, () => ({}), "denied"],
    ];
    for (const [own, common, code] of rows) {
      let ran = false;
      const { call } = fixture([{
        ...CITY,
        ...(own === undefined ? {} : { validate: own as never }),
        execute: () => void (ran = true),
      }], { validators: common === undefined ? [] : [common as never] });
      assertEquals(outcome(await call("weather", { city: "Oslo" })), code);
      assertEquals(ran, false);
    }
  });
});

describe("the arguments that were validated", () => {
  const parameters = {
    type: "object",
    properties: { path: { const: "ok" } },
    required: ["path"],
  } as const;

  it("reach the tool unchanged, even if the caller modifies its object meanwhile", async () => {
    const mine = { path: "ok" };
    const { call } = single({
      parameters,
      requiresApproval: true,
      execute: (params) => params as never,
    }, {
      approve: () => {
        mine.path = "evil";
        return true;
      },
    });
    assertEquals(outcome(await call(mine)), { path: "ok" });
  });

  it("cannot be changed by an approver", async () => {
    const { call } = single({
      parameters,
      requiresApproval: true,
      execute: (params) => params as never,
    }, {
      approve: (info) => {
        (info.arguments as { path: string }).path = "evil";
        return true;
      },
    });
    assertEquals(outcome(await call('{"path":"ok"}')), "denied");
  });

  it("belong to the tool, which may change them", async () => {
    const { call } = single({
      execute: (params) => (params as { list: number[] }).list.sort() as never,
    });
    const mine = { list: [2, 1] };
    assertEquals(outcome(await call(mine)), [1, 2]);
    assertEquals(mine.list, [2, 1]);
  });
});
