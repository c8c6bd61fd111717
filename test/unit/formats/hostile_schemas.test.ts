import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/formats/mod.ts";
import { exportTools } from "../../../src/formats/mod.ts";
import { inlineRefs, mergeAllOf } from "../../../src/formats/transform/merge_all_of.ts";
import { oneOfToAnyOf } from "../../../src/formats/transform/unions.ts";
import { type JsonSchema, makeTool, type Tool } from "../../../src/tool/mod.ts";
import { sample } from "../../support/laws.ts";
import { runPass } from "./run_pass.ts";

type Node = { readonly [keyword: string]: unknown };

const ref = (name: string): Node => ({ $ref: `#/$defs/${name}` });
const object = (properties: Node, more: Node = {}): Node => ({
  type: "object",
  properties,
  ...more,
});
const tool = (parameters: Node): Tool =>
  makeTool({ name: "t", description: "A tool.", parameters });

/** Definitions `d0` to `d<count>`, of which each is made of the next, and the last is `leaf`. */
function chain(count: number, make: (next: Node, level: number) => Node, leaf: Node): Node {
  const $defs: Record<string, Node> = { [`d${count}`]: leaf };
  for (let level = 0; level < count; level++) {
    $defs[`d${level}`] = make(ref(`d${level + 1}`), level);
  }
  return object({ a: ref("d0") }, { $defs, required: ["a"], additionalProperties: false });
}

/** The number of reads of a list during a function. */
function counted<T>(
  list: readonly T[],
): { readonly list: readonly T[]; readonly reads: () => number } {
  let reads = 0;
  const proxy = new Proxy(list, {
    get(target, key, receiver): unknown {
      reads++;
      return Reflect.get(target, key, receiver);
    },
  });
  return { list: proxy, reads: () => reads };
}

/** The result of each target for one schema: sent, or the message of its rejection. */
function everywhere(parameters: Node, targets = plue.listTargets()): Map<plue.TargetName, string> {
  const one = tool(parameters);
  return new Map(
    targets.map(({ id }) => {
      const { rejected } = exportTools([one], id);
      return [id, rejected[0]?.message.replace(/^.*?: /, "") ?? "sent"];
    }),
  );
}

// A schema that doubles at each level could not be processed completely.
describe("exportTools() with a schema whose references grow exponentially", () => {
  const MANY = 60;

  it("merges each definition once, though allOf refers to it twice at each level", () => {
    const parameters = chain(MANY, (next) => ({ allOf: [next, next] }), { type: "string" });
    const { tools } = exportTools([tool(parameters)], "openai.strict");
    assertEquals(tools[0]?.function.parameters["properties"], { a: { $ref: "#/$defs/d0" } });
    assertEquals(tools[0]?.function.strict, true);
    const sent = [...everywhere(parameters).values()].filter((what) => what === "sent");
    assert(sent.length >= 15, `${sent.length} targets`);
  });

  it("reports a merge that doubles at each level", () => {
    const parameters = chain(
      MANY,
      (next) => object({ a: { allOf: [next] }, b: { allOf: [next] } }),
      { type: "string" },
    );
    const { rejected } = exportTools([tool(parameters)], "gemini");
    assertEquals(rejected, [{
      tool: "t",
      rule: "schema",
      message:
        'Cannot export "t" to gemini: Cannot rewrite the schema: it takes more than 2000000 steps',
    }]);
    // Without strict mode nothing needs merging.
    const { names } = exportTools([tool(parameters)], "openai.strict");
    assertEquals(names.encodings[0]?.strict, false);
  });

  it("reports lists of unmergeable parts that double", () => {
    const double = (next: Node) => ({ allOf: [next, next] });
    const schemas = [
      chain(MANY, double, { type: "string", $anchor: "x" }),
      chain(MANY, double, { prefixItems: [true], items: true }),
      chain(MANY, (next, level) => ({ ...double(next), anyOf: [{ minimum: level }] }), {}),
    ];
    const targets = sample(plue.listTargets());
    for (const schema of schemas) assertEquals(everywhere(schema, targets).size, targets.length);
  });

  it("checks once whether the target of a reference accepts null", () => {
    const parameters = chain(MANY, (next) => ({ anyOf: [next, next] }), { type: "string" });
    const optional = { ...parameters, required: [] };
    const results = everywhere(optional);
    assertEquals(results.get("mcp@2026-07-28"), "sent");
    assertEquals(results.get("openai.chat.strict"), "sent");
  });

  it("bounds the inlined parts and their depth, with the same message on every runtime", () => {
    const wide = chain(MANY, (next) => object({ a: next, b: next }), { type: "string" });
    assertThrows(() => runPass(inlineRefs)(wide), RangeError, "more than 20000 subschemas");
    const deep = chain(2_000, (next) => object({ a: next }), { type: "string" });
    assertThrows(
      () => runPass(inlineRefs)(deep),
      RangeError,
      "Cannot walk the schema: it has more than 512",
    );
  });

  it("counts each subschema that is inlined once", () => {
    // 60 levels above 500 properties: 30,000 if the properties were counted at each level.
    const leaf = object(
      Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`p${index}`, {}])),
    );
    const { losses } = runPass(inlineRefs)(chain(MANY, (next) => object({ a: next }), leaf));
    assertEquals(losses, []);
  });
});

describe("exportTools() with long lists", () => {
  const COUNT = 2_000;
  const numbers = Array.from({ length: COUNT }, (_, index) => index);

  it("compares enums in linear time", () => {
    const lists: unknown[][] = [numbers, numbers.map((number) => ({ number }))];
    for (const values of lists) {
      const one = counted(values);
      const two = counted(values.slice(1));
      const { schema } = runPass(mergeAllOf)({ allOf: [{ enum: one.list }, { enum: two.list }] });
      assertEquals(schema, { enum: values.slice(1) });
      assert(one.reads() + two.reads() < 20 * COUNT, `${one.reads()} and ${two.reads()} reads`);
    }
  });

  it("distinguishes branches without comparing all pairs of values", () => {
    const branches = Array.from({ length: 10 }, (_, branch) => {
      const values = counted(numbers.map((number) => `${branch} ${number}`));
      return { values, schema: { enum: values.list } };
    });
    const { losses } = runPass({ enter: oneOfToAnyOf })({
      oneOf: branches.map(({ schema }) => schema),
    });
    assertEquals(losses, []);
    const reads = branches.reduce((sum, { values }) => sum + values.reads(), 0);
    assert(reads < 10 * 20 * COUNT, `${reads} reads`);
  });

  it("follows a chain of definitions once", () => {
    let reads = 0;
    const schema = chain(COUNT, (next) => ({
      type: "object",
      properties: {
        a: {
          get $ref(): unknown {
            reads++;
            return next["$ref"];
          },
        },
      },
    }), { type: "string" });
    runPass(mergeAllOf)({ ...schema, allOf: [ref(`d${COUNT - 1}`)] });
    assert(reads > COUNT && reads < 50 * COUNT, `${reads} reads`);
  });

  it("indexes anchors once", () => {
    let reads = 0;
    const $defs: Record<string, JsonSchema> = {};
    const properties: Record<string, JsonSchema> = {};
    for (const number of numbers) {
      properties[`p${number}`] = { $ref: `#a${number}` };
      $defs[`d${number}`] = {
        get $anchor(): string {
          reads++;
          return `a${number}`;
        },
      };
    }
    const { schema } = runPass(inlineRefs)({ properties, $defs });
    assertEquals(Object.keys((schema as Node)["properties"] as Node).length, COUNT);
    assert(reads < 20 * COUNT, `${reads} reads`);
  });
});

describe("encodeArguments() and decodeArguments() with nested unions", () => {
  it("choose each branch by the first levels, not by trying all of the rest", () => {
    const $defs: Record<string, Node> = { d60: { type: "string" } };
    for (let level = 0; level < 60; level++) {
      const next = ref(`d${level + 1}`);
      $defs[`d${level}`] = {
        anyOf: [
          object({ $k: next, b: { const: 1 } }, { required: ["$k", "b"] }),
          object({ $k: next, b: { const: 2 }, c: { type: "null" } }, { required: ["$k", "b"] }),
        ],
      };
    }
    let own: unknown = "x";
    let wire: unknown = "x";
    for (let level = 0; level < 60; level++) {
      own = { $k: own, b: 2 };
      wire = { _k: wire, b: 2 };
    }
    const { names } = exportTools([tool(object({ a: ref("d0") }, { $defs }))], "anthropic");
    const rewrite = names.encodingOf("t")?.input;
    assertEquals(plue.encodeArguments({ a: own }, rewrite), { a: wire });
    assertEquals(plue.decodeArguments({ a: wire }, rewrite), { a: own });
  });

  it("end for branches that consist of branches", () => {
    const $defs: Record<string, Node> = { d40: object({ $k: { type: "string" } }) };
    for (let level = 0; level < 40; level++) {
      const next = ref(`d${level + 1}`);
      $defs[`d${level}`] = { anyOf: [next, next], allOf: [{ anyOf: [next, next] }] };
    }
    const { names } = exportTools([tool(object({ a: ref("d0") }, { $defs }))], "anthropic");
    const rewrite = names.encodingOf("t")?.input;
    for (const a of [{ $k: "x" }, 1, [{ $k: 1 }]]) {
      assertEquals(typeof plue.encodeArguments({ a }, rewrite), "object");
      assertEquals(typeof plue.decodeArguments({ a }, rewrite), "object");
    }
  });
});
