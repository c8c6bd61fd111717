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
import { aSchema, aValue } from "../../support/arbitrary_schema.ts";

// The same cases on every runtime and in every run.
fc.configureGlobal({ seed: 20261122 });

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
  it("shows the arguments that are left, under their new names", () => {
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

  it("keeps what protects the tool, and leaves the aliases to it", () => {
    const { risk, roles, scopes, tags, namespace, annotations, aliases } = viewOf(push, OPTIONS);
    assertEquals(
      { risk, roles, scopes, tags, namespace, annotations, aliases },
      {
        risk: push.risk,
        roles: push.roles,
        scopes: push.scopes,
        tags: push.tags,
        namespace: "git",
        annotations: push.annotations,
        aliases: [],
      },
    );
  });

  it("leads a call back to the tool", async () => {
    const view = viewOf(push, OPTIONS);
    assertEquals(answerOf(await call(view, { name: "main" })), {
      remote: "origin",
      branch: "main",
      depth: 1,
    });
    assertEquals(answerOf(await call(view, { name: "main", depth: 2 })), {
      remote: "origin",
      branch: "main",
      depth: 2,
    });
  });

  for (const argument of ["remote", "force", "branch", "anything"]) {
    it(`refuses the argument "${argument}", which the view does not have`, async () => {
      const result = await call(viewOf(push, OPTIONS), { name: "main", [argument]: "evil" });
      assertEquals(!result.ok && result.error.code, "invalid_arguments");
    });
  }

  it("says what is wrong in the view's words", async () => {
    const message = answerOf(await call(viewOf(push, OPTIONS), { name: "x" }));
    assert(String(message).includes("/name must"), String(message));
  });

  it("checks what its schema does not show against the tool's own schema", async () => {
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
      // Neither the bound value nor its argument is the caller's to know.
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
    assertEquals(answerOf(await call(view, { what: "main" })), {
      remote: "origin",
      branch: "main",
      depth: 9,
    });
    assert(String(answerOf(await call(view, { what: "x" }))).includes("/what must"));
  });

  it("lets a library's schema check what was led back", async () => {
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

  const refused: readonly (readonly [string, ViewOptions, string])[] = [
    ["an unknown option", { binds: {} } as ViewOptions, 'did you mean "bind"?'],
    ["a name of another namespace", { name: "safe:push" }, "the namespace is the tool's"],
    ["an argument that is not there", { bind: { remot: "x" } }, '"/bind/remot" is no argument'],
    ["a bound value that does not fit", { bind: { depth: 10 } }, '"/bind/depth" does not fit'],
    ["a default that does not fit", { defaults: { depth: "1" } }, '"/defaults/depth" does not fit'],
    ["a hidden required argument", { hide: ["branch"] }, '"/hide/branch" hides a required'],
    ["two arguments of one name", { rename: { depth: "force" } }, 'would both be "force"'],
    ["an argument in two places", { bind: { depth: 1 }, hide: ["depth"] }, "is in"],
    ["a default of a bound argument", { bind: { depth: 1 }, defaults: { depth: 2 } }, "is in"],
    ["a name that is empty", { rename: { depth: "" } }, "names that are not empty"],
  ];
  for (const [what, options, message] of refused) {
    it(`refuses ${what}`, () => {
      assertThrows(() => viewOf(push, options), TypeError, message);
    });
  }

  it("never answers a value in its errors", () => {
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
    it(`is removed by ${what}, as its tool is`, () => {
      assertEquals(seen(selection), []);
    });
  }

  it("is explained by what removed its tool", () => {
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

  it("is kept by what keeps both", () => {
    assertEquals(seen({ allowIds: ["git:publish"], denyIds: ["other"] }), ["git:publish"]);
  });
});

const NAMES = ["a", "b", "c d", "constructor", "__proto__"] as const;
const engine = typeboxEngine();

/** A tool with generated arguments, and a view of it. */
const aView = fc.record({
  properties: fc.uniqueArray(fc.tuple(fc.constantFrom<string>(...NAMES), aSchema()), {
    selector: ([name]) => name,
    maxLength: 4,
  }),
  required: fc.subarray([...NAMES]),
  closed: fc.boolean(),
  bind: fc.uniqueArray(fc.tuple(fc.constantFrom<string>(...NAMES), aValue), {
    selector: ([name]) => name,
    maxLength: 2,
  }),
  defaults: fc.uniqueArray(fc.tuple(fc.constantFrom<string>(...NAMES), aValue), {
    selector: ([name]) => name,
    maxLength: 2,
  }),
  hide: fc.subarray([...NAMES], { maxLength: 2 }),
  rename: fc.uniqueArray(
    fc.tuple(fc.constantFrom<string>(...NAMES), fc.constantFrom<string>(...NAMES, "new")),
    { selector: ([name]) => name, maxLength: 3 },
  ),
}).map(({ properties, required, closed, bind, defaults, hide, rename }) => {
  const tool = defineTool({
    name: "any",
    description: "Has any arguments.",
    parameters: {
      type: "object",
      properties: Object.fromEntries(properties),
      required: required.filter((name) => properties.some(([key]) => key === name)),
      ...(closed && { additionalProperties: false }),
    },
  }) as Tool;
  const taken = new Set<string>();
  const own = <Item>(list: readonly Item[], nameOf: (item: Item) => string): readonly Item[] =>
    list.filter((item) => {
      const name = nameOf(item);
      if (taken.has(name) || !properties.some(([key]) => key === name)) return false;
      taken.add(name);
      return true;
    });
  const options = {
    bind: Object.fromEntries(own(bind, ([name]) => name)),
    hide: own(hide, (name) => name),
    rename: Object.fromEntries(own(rename, ([name]) => name)),
    defaults: Object.fromEntries(own(defaults, ([name]) => name)),
  };
  try {
    return { tool, view: viewOf(tool, options) };
  } catch (error) {
    // A bound value that does not fit, or a clash of names, is refused.
    if (!(error instanceof TypeError)) throw error;
    return undefined;
  }
})
  // Without an engine, `viewOf` cannot tell whether a bound value has its format: calls tell.
  .filter((made) =>
    made !== undefined && !JSON.stringify(made.tool).includes('"format"')
  ) as fc.Arbitrary<{ readonly tool: Tool; readonly view: Tool }>;

describe("what is valid for a view", () => {
  let fitting = 0;
  // In parts, so that none takes long on a slow machine: 5,000 values in all.
  for (const part of [1, 2, 3, 4, 5]) {
    it(`is valid for its tool, once it is led back (part ${part})`, () => {
      const args = fc.uniqueArray(
        fc.tuple(fc.constantFrom<string>(...NAMES, "new"), aValue),
        { selector: ([name]) => name, maxLength: 4 },
      ).map((entries) => Object.fromEntries(entries));
      fc.assert(
        fc.property(
          aView,
          fc.array(args, { minLength: 2, maxLength: 2 }),
          ({ tool, view }, list) => {
            for (const value of list) {
              if (!compileOnce(engine, view.parameters).check(value)) continue;
              fitting++;
              assert(compileOnce(engine, tool.parameters).check(view.view?.lead(value)));
            }
          },
        ),
        { numRuns: 500, seed: 20261122 + part },
      );
      // A law over values of which none fits would say nothing.
      assert(fitting > 50 * part, `only ${fitting} of ${1_000 * part} values fit`);
    });
  }
});
