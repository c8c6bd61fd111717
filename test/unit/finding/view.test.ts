import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import {
  buildToolset,
  byNamespace,
  defineTool,
  denyIds,
  isTool,
  type Selection,
  type Tool,
  ToolDispatcher,
  ToolRegistry,
  type ToolResult,
  typeboxEngine,
} from "../../../mod.ts";
import { viewOf, type ViewOptions } from "../../../src/finding/mod.ts";
import { compileOnce } from "../../../src/schema/mod.ts";
import { type AnySchema, aSchema, aValue, aValueFor } from "../../support/arbitrary_schema.ts";
import { cases } from "../../support/laws.ts";
import data from "./view.json" with { type: "json" };

const rows: {
  readonly refused: readonly (readonly [what: string, options: object, message: string])[];
  readonly rules: readonly (readonly [what: string, rule: object, message: string])[];
} = data as never;

/** Answers its arguments. */
const push: Tool = defineTool({
  name: "push",
  namespace: "git",
  description: "Pushes a branch.",
  risk: "high",
  tags: ["remote"],
  roles: ["impl"],
  scopes: ["git"],
  requiresApproval: false,
  aliases: ["git:send"],
  parameters: {
    type: "object",
    properties: {
      remote: { type: "string" },
      branch: { type: "string", minLength: 2 },
      force: { type: "boolean" },
      depth: { type: "integer", maximum: 9 },
    },
    required: ["remote", "branch"],
  },
  examples: [
    { input: { remote: "origin", branch: "main" } },
    { input: { remote: "fork", branch: "main" } },
    { input: { remote: "origin", branch: "main", force: true } },
  ],
  execute: (params) => params,
}) as Tool;

const OPTIONS: ViewOptions = {
  name: "publish",
  description: "Publishes a branch.",
  bind: { remote: "origin" },
  rename: { branch: "name" },
  hide: ["force"],
  defaults: { depth: 1 },
};

function call(tool: Tool, args: unknown): Promise<ToolResult> {
  return new ToolDispatcher(new ToolRegistry({ tools: [tool] }))
    .dispatch({ name: tool.id, arguments: args });
}

/** The content of a success, or the message of a failure. */
function answerOf(result: ToolResult): unknown {
  return result.ok ? result.content : result.error.message;
}

describe("viewOf()", () => {
  it("shows the remaining arguments, under their new names", () => {
    const view = viewOf(push, OPTIONS);
    assert(isTool(view));
    assertEquals([view.id, view.description], ["git:publish", "Publishes a branch."]);
    assertEquals(view.parameters, {
      type: "object",
      properties: {
        name: { type: "string", minLength: 2 },
        depth: { type: "integer", maximum: 9, default: 1 },
      },
      required: ["name"],
      additionalProperties: false,
    });
    assertEquals(view.examples, [{ input: { name: "main" } }]);
    assertEquals(view.view?.tool, push);
  });

  it("has the access rules of the tool, without its aliases", () => {
    const view = viewOf(push, OPTIONS);
    for (const field of ["risk", "roles", "scopes", "tags", "namespace", "annotations"] as const) {
      assertEquals(view[field], push[field]);
    }
    assertEquals(view.aliases, []);
  });

  it("maps a call back to the tool", async () => {
    const view = viewOf(push, OPTIONS);
    const main = { remote: "origin", branch: "main" };
    assertEquals(answerOf(await call(view, { name: "main" })), { ...main, depth: 1 });
    assertEquals(answerOf(await call(view, { name: "main", depth: 2 })), { ...main, depth: 2 });
  });

  for (const argument of ["remote", "force", "branch", "anything"]) {
    it(`rejects the argument "${argument}", which the view does not have`, async () => {
      const result = await call(viewOf(push, OPTIONS), { name: "main", [argument]: "evil" });
      assertEquals(!result.ok && result.error.code, "invalid_arguments");
    });
  }

  it("reports issues with the view's names", async () => {
    const message = answerOf(await call(viewOf(push, OPTIONS), { name: "x" }));
    assert(String(message).includes("/name must"), String(message));
  });

  it("checks rules that its schema omits against the tool's own schema", async () => {
    const tool = defineTool({
      name: "find",
      description: "Finds.",
      parameters: {
        type: "object",
        properties: { id: { type: "string" }, text: { type: "string" }, key: { type: "string" } },
        required: ["key"],
        oneOf: [{ required: ["id"] }, { required: ["text"] }],
        dependentSchemas: { text: { properties: { key: { const: "open" } } } },
      },
      execute: (params) => params,
    }) as Tool;
    const view = viewOf(tool, { name: "get", bind: { key: "s3cret" }, rename: { id: "which" } });
    assertEquals(answerOf(await call(view, { which: "1" })), { id: "1", key: "s3cret" });
    for (const args of [{}, { which: "1", text: "x" }, { text: "x" }]) {
      const result = await call(view, args);
      assertEquals(!result.ok && result.error.code, "invalid_arguments");
      // The caller must see neither the bound value nor the name of its argument.
      assert(!/s3cret|key\b(?!word)/.test(JSON.stringify(result)), JSON.stringify(result));
    }
  });

  it("makes views of views", async () => {
    const view = viewOf(viewOf(push, OPTIONS), {
      name: "publish_deep",
      rename: { name: "what" },
      bind: { depth: 9 },
    });
    assertEquals(view.id, "git:publish_deep");
    const deep = { remote: "origin", branch: "main", depth: 9 };
    assertEquals(answerOf(await call(view, { what: "main" })), deep);
    assert(String(answerOf(await call(view, { what: "x" }))).includes("/what must"));
  });

  it("validates the converted arguments with a library's schema", async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      name: "lib",
      description: "Has a library's schema.",
      parameters: {
        "~standard": {
          version: 1,
          vendor: "fake",
          validate: (value: unknown) => {
            seen.push(value);
            const { city } = value as { readonly city?: string };
            return city === "Oz"
              ? { issues: [{ message: "There is no such city", path: ["city"] }] }
              : { value: { city: `${city}!` } };
          },
          jsonSchema: {
            input: () => ({ type: "object", properties: { city: { type: "string" } } }),
            output: () => ({}),
          },
        },
      },
      execute: (params) => params,
    }) as Tool;
    const view = viewOf(tool, { rename: { city: "place" } });
    assertEquals(answerOf(await call(view, { place: "Rome" })), { city: "Rome!" });
    assertEquals(
      answerOf(await call(view, { place: "Oz" })),
      'Cannot call "lib": its arguments do not fit: /place: There is no such city',
    );
    assertEquals(seen, [{ city: "Rome" }, { city: "Oz" }]);
    const wrong = await call(view, { city: "Rome" });
    assertEquals(!wrong.ok && wrong.error.code, "invalid_arguments");
    assertEquals(seen.length, 2);
  });

  it("compiles and checks the tool's own schema with the registry", () => {
    const bad = defineTool({
      name: "bad",
      description: "Has a schema that no registry takes.",
      parameters: { type: "object", properties: { a: { type: "string" } }, allOf: [{ type: "x" }] },
    }) as Tool;
    assertThrows(
      () => new ToolRegistry({ tools: [viewOf(bad, { rename: { a: "b" } })] }),
      TypeError,
      "/allOf/0/type",
    );
  });

  for (const [what, options, message] of rows.refused) {
    it(`rejects ${what}`, () => {
      assertThrows(() => viewOf(push, options), TypeError, message);
    });
  }

  it("never repeats a value in its errors", () => {
    const error = assertThrows(() => viewOf(push, { bind: { depth: "s3cret" } }), TypeError);
    assert(!error.message.includes("s3cret"));
  });
});

describe("a view in a selection", () => {
  const view = viewOf(push, OPTIONS);
  const seen = (selection: Selection): readonly string[] => buildToolset([view], selection).ids;

  const removing: readonly (readonly [string, Selection])[] = [
    ["the deny-list", { denyIds: ["git:push"] }],
    ["the deny-list, by an alias of the tool", { denyIds: ["git:send"] }],
    ["the context's deny-list", { context: { disabledToolIds: ["git:push"] } }],
    ["a filter", { filters: [denyIds("git:push")] }],
    ["a policy", { policies: [{ name: "no push", allow: (tool) => tool?.id !== "git:push" }] }],
    ["risk", { maxRisk: "medium" }],
    ["role", { role: "control" }],
    ["scopes", { scopes: [] }],
    ["the allow-list, which names the tool", { allowIds: ["git:push"] }],
  ];
  for (const [what, selection] of removing) {
    it(`is removed by ${what}, as its tool is`, () => assertEquals(seen(selection), []));
  }

  it("is explained by the step that removed its tool", () => {
    const toolset = buildToolset([view], { denyIds: ["git:push"] });
    assertEquals(toolset.explain("git:publish").removedBy, "deny-list");
    const policies = [byNamespace("git"), {
      name: "no push",
      allow: (tool?: Tool | null) => tool !== push,
    }];
    assertEquals(
      buildToolset([view], { policies }).explain("git:publish").reason,
      '"git:publish" is removed by policy: policy no push denies it',
    );
  });

  it("is selected if the selection also keeps its tool", () => {
    assertEquals(seen({ allowIds: ["git:publish"], denyIds: ["other"] }), ["git:publish"]);
  });
});

const NAMES = ["a", "b", "c d", "constructor", "__proto__"] as const;
const engine = typeboxEngine();

/** Rules of a root over several arguments. */
const aRule: fc.Arbitrary<Readonly<Record<string, unknown>>> = fc.oneof(
  fc.record({ minProperties: fc.constantFrom(1, 2, 3) }),
  fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...NAMES)).map(([name, needed]) => ({
    dependentRequired: Object.fromEntries([[name, [needed]]]),
  })),
  fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...NAMES)).map(([one, other]) => ({
    anyOf: [{ required: [one] }, { required: [other], not: { $ref: "#/$defs/one" } }],
  })),
  aSchema().map((schema) => ({ additionalProperties: schema })),
);

/** An object of generated members. */
function someOf<Value>(
  values: fc.Arbitrary<Value>,
  maxLength: number,
): fc.Arbitrary<Record<string, Value>> {
  return fc.uniqueArray(fc.tuple(fc.constantFrom<string>(...NAMES), values), {
    selector: ([name]) => name,
    maxLength,
  }).map((entries) => Object.fromEntries(entries));
}

/** A tool with generated arguments, a view of it, and arguments that may fit the view. */
const aView = fc.record({
  properties: someOf(
    fc.oneof(
      aSchema(),
      aSchema({ references: true }),
      fc.constantFrom<AnySchema>(
        { $ref: "#/properties/a" },
        { type: "array", items: { $ref: "#" } },
        { type: "array", items: { $ref: "#/properties/b" } },
      ),
    ),
    4,
  ),
  definition: aSchema({ references: true }),
  required: fc.subarray([...NAMES]),
  closed: fc.boolean(),
  rule: fc.option(aRule, { freq: 3 }),
  bind: someOf(aValue, 2),
  defaults: someOf(aValue, 2),
  hide: fc.subarray<string>([...NAMES], { maxLength: 2 }),
  rename: someOf(fc.constantFrom("new", ...NAMES), 3),
}).map(({ properties, definition, required, closed, rule, bind, defaults, hide, rename }) => {
  const one = { type: "object", properties: { a: definition }, additionalProperties: false };
  const parameters = {
    type: "object",
    properties,
    required: required.filter((name) => Object.hasOwn(properties, name)),
    ...(closed && { additionalProperties: false }),
    ...rule,
    ...(JSON.stringify([properties, rule]).includes("#/$defs") && { $defs: { one, two: one } }),
  };
  const taken = new Set<string>();
  const isFree = (name: string): boolean => {
    if (taken.has(name) || !Object.hasOwn(properties, name)) return false;
    taken.add(name);
    return true;
  };
  const own = <Value>(members: Record<string, Value>): Record<string, Value> =>
    Object.fromEntries(Object.entries(members).filter(([name]) => isFree(name)));
  const options = {
    bind: own(bind),
    hide: hide.filter(isFree),
    rename: own(rename),
    defaults: own(defaults),
  };
  const tool = defineTool({ name: "any", description: "Has any arguments.", parameters }) as Tool;
  try {
    // References of a generated schema may be dangling or circular.
    new ToolRegistry({ tools: [tool] });
    return { tool, view: viewOf(tool, options), options, isRuled: rule !== null };
  } catch (error) {
    // An invalid bound value, or a conflict of names, is rejected.
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    return undefined;
  }
})
  // Without an engine, formats of bound values are only validated by calls.
  .filter((made) => made !== undefined && !JSON.stringify(made.tool).includes('"format"'))
  .chain((made) => {
    const { tool, options: { bind, hide, rename } } = made as NonNullable<typeof made>;
    const fitting = aValueFor(tool.parameters).map((value) =>
      Object.fromEntries(
        Object.entries(value as object).flatMap(([name, member]) =>
          Object.hasOwn(bind, name) || hide.includes(name)
            ? []
            : [[Object.hasOwn(rename, name) ? String(rename[name]) : name, member]]
        ),
      )
    );
    return fc.record({
      made: fc.constant(made as NonNullable<typeof made>),
      values: fc.array(fc.oneof(fitting, someOf(aValue, 4)), { minLength: 2, maxLength: 2 }),
    });
  });

describe("the arguments that are valid for a view", () => {
  let fitting = 0;
  let linked = 0;
  // 5,000 values on Bun, in parts, so that no test takes long on a slow machine.
  for (const part of [1, 2, 3, 4, 5]) {
    it(`are valid for its tool after conversion (part ${part})`, () => {
      const runs = cases(500, 20261122 + part);
      fc.assert(
        fc.property(aView, ({ made: { tool, view, isRuled }, values }) => {
          // If a registry accepts a tool, it also accepts a view of the tool.
          new ToolRegistry({ tools: [view] });
          for (const value of values) {
            if (!compileOnce(engine, view.parameters).check(value)) continue;
            // Rules over several arguments are not shown, but calls validate them.
            if (isRuled) continue;
            fitting++;
            if (JSON.stringify(view.parameters).includes('"tool"')) linked++;
            const { check, issues } = compileOnce(engine, tool.parameters);
            const led = view.view?.toOriginalArguments(
              value,
              (_, led) => check(led) ? undefined : issues(led),
            );
            assert(led !== undefined && led.issues === undefined);
          }
        }),
        runs,
      );
      // The law would prove nothing if too few values fitted.
      const tried = 2 * runs.numRuns * part;
      assert(fitting > tried / 20, `only ${fitting} of ${tried} values fit`);
      assert(linked > tried / 200, `only ${linked} of them fit a view with references to its root`);
    });
  }
});

/** A tool that returns its arguments. */
function echo(parameters: object): Tool {
  return defineTool({ name: "echo", description: "Echo.", parameters, execute: (args) => args });
}

describe("a view of a tool with references", () => {
  const tree = data.tree;
  it("have the same meaning after two names are exchanged", async () => {
    const [a, b, c] = [{ type: "integer" }, { type: "string" }, { $ref: "#/properties/a" }];
    const tool = echo({ type: "object", properties: { a, b, c } });
    const view = viewOf(tool, { rename: { a: "b", b: "a" } });
    assertEquals(answerOf(await call(view, { a: "x", b: 1, c: 2 })), { a: 1, b: "x", c: 2 });
    assertEquals(
      answerOf(await call(view, { c: "x" })),
      'Cannot call "echo": its arguments do not fit: /c must be an integer, not a string',
    );
  });

  const forms: readonly (readonly [string, object])[] = [
    ["by the root", tree],
    ["by a root with a URI", { $id: "https://example.com/tree", ...tree }],
    ["of draft-07", { $schema: "http://json-schema.org/draft-07/schema#", ...tree }],
    ["by a dynamic anchor", {
      ...tree,
      $dynamicAnchor: "node",
      properties: { ...tree.properties, kids: { items: { $dynamicRef: "#node" } } },
    }],
    ["of 2019-09, recursively", {
      ...tree,
      $schema: "https://json-schema.org/draft/2019-09/schema",
      $recursiveAnchor: true,
      properties: { ...tree.properties, kids: { items: { $recursiveRef: "#" } } },
    }],
    ["through a definition", {
      ...tree,
      properties: { ...tree.properties, kids: { $ref: "#/$defs/kids" } },
      $defs: { kids: { type: "array", items: { $ref: "#" } } },
    }],
  ];
  for (const [how, parameters] of forms) {
    it(`accepts parts of the tool's own form, ${how}`, async () => {
      const view = viewOf(echo(parameters), { bind: { value: 7 }, rename: { label: "text" } });
      const kids = [{ value: 1, label: "x", kids: [{ value: 2 }] }];
      const whole = { value: 7, label: "top", kids };
      assertEquals(answerOf(await call(view, { text: "top", kids })), whole);
      assertEquals(
        answerOf(await call(view, { kids: [{ text: "x" }] })),
        'Cannot call "echo": its arguments do not fit: /kids/0 must have the property "value"',
      );
    });
  }

  it("makes an argument optional at the root only", async () => {
    const view = viewOf(echo(tree), { defaults: { value: 7 } });
    assertEquals(answerOf(await call(view, {})), { value: 7 });
    assert(String(answerOf(await call(view, { kids: [{}] }))).includes('the property "value"'));
  });

  it("rejects a bound value that a nested part of the root rejects", () => {
    const make = () => viewOf(echo(tree), { bind: { kids: [{}] } });
    assertThrows(make, TypeError, '"/bind/kids" does not fit');
  });
});

describe("the issues of a view about rules for all arguments", () => {
  const parameters = {
    type: "object",
    properties: { key: { type: "integer" }, a: { type: "string" }, b: { type: "string" } },
    required: ["key"],
  };
  const options: ViewOptions = { bind: { key: 421 }, rename: { a: "first", b: "a" } };
  for (const [what, rule, message] of rows.rules) {
    it(what, async () => {
      const tool = echo({ ...parameters, ...rule });
      const result = await call(viewOf(tool, options), { first: "x" });
      assert(!result.ok);
      assertEquals(result.error.issues?.[0]?.message, message);
      assert(!/421|\bkey\b/.test(JSON.stringify(result.error)), JSON.stringify(result.error));
    });
  }

  it("does not name a bound argument whose name is too long for an issue", async () => {
    const long = "k".repeat(150);
    const tool = echo({
      type: "object",
      properties: { [long]: { type: "integer" }, a: { type: "string" } },
      dependentSchemas: { a: { properties: { [long]: { const: 1 } } } },
    });
    const result = await call(viewOf(tool, { bind: { [long]: 2 } }), { a: "x" });
    assertEquals(!result.ok && result.error.code, "invalid_arguments");
    assert(!JSON.stringify(result).includes("kkk"), JSON.stringify(result));
  });
});
