import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, isTool, makeTool, type ToolDefinition } from "../../../src/tool/mod.ts";
import { ToolRegistry } from "../../../mod.ts";
import data from "./define_tool.json" with { type: "json" };

/** A definition with the required fields and `fields`, untyped because it represents input. */
function definition(fields: Readonly<Record<string, unknown>> = {}): ToolDefinition {
  return { name: "echo", description: "Says it again.", ...fields } as ToolDefinition;
}

/** A schema of a library with `input` and `output` as its JSON Schemas. */
function librarySchema(input: object, output: object = input): object {
  return {
    "~standard": {
      version: 1,
      vendor: "fake",
      validate: (value: unknown) => ({ value }),
      jsonSchema: { input: () => input, output: () => output },
    },
  };
}

const OBJECT = { type: "object", properties: { a: { type: "string" } } };

describe("defineTool()", () => {
  it("sets an omitted field to its default", () => {
    const tool = makeTool(definition());
    const entries = Object.entries(tool).filter(([, value]) => value !== undefined);
    assertEquals(Object.fromEntries(entries), data.defaults);
  });

  it("keeps every passed field", () => {
    const tool = makeTool(data.complete as unknown as ToolDefinition);
    for (const [field, value] of Object.entries(data.complete)) {
      assertEquals<unknown>([field, tool[field as "meta"]], [field, value]);
    }
    assertEquals(tool.id, "chain:status");
  });

  // The specification's "Tool Definition Pattern", word for word.
  it("accepts the pattern of the specification", () => {
    const { id, namespace, name, roles, allowedRoles } = makeTool(data.specified);
    assertEquals({ id, namespace, name, roles, allowedRoles }, {
      id: "chain:status",
      namespace: "chain",
      name: "status",
      roles: ["control", "impl"],
      allowedRoles: ["control", "impl"],
    });
  });

  it("has its roles under both names, and copies them once", () => {
    const tool = makeTool(definition({ roles: ["control"] }));
    assertStrictEquals(tool.allowedRoles, tool.roles);
    assertEquals(Object.keys(tool).includes("allowedRoles"), false);
    assertEquals(makeTool({ ...tool, roles: ["impl"] }).allowedRoles, ["impl"]);
    assertEquals(makeTool(definition()).allowedRoles, undefined);
    // A tool as another copy of plue creates it.
    const other = Object.defineProperty({ ...tool }, "allowedRoles", { value: tool.roles });
    assertEquals(makeTool(other).allowedRoles, ["control"]);
  });

  it("makes the same id with a separate namespace and with one in the name", () => {
    const { description } = definition();
    assertEquals(
      makeTool({ name: "chain:status", description }),
      makeTool({ name: "status", namespace: "chain", description }),
    );
  });

  it("returns a tool that it created unchanged", () => {
    const tool = makeTool(definition());
    assertStrictEquals(makeTool(tool), tool);
    assertStrictEquals<unknown>(defineTool(tool as never), tool);
  });

  it("recognises its own tools, and no similar objects", () => {
    const tool = makeTool(definition());
    assertEquals(isTool(tool), true);
    assertEquals([{ ...tool }, Object.create(tool), null, undefined, "echo"].some(isTool), false);
  });

  it("prefers a hint of the author to a derived one", () => {
    const { annotations } = makeTool(
      definition({
        risk: "safe",
        tags: ["read-only"],
        annotations: { readOnlyHint: false, openWorldHint: false },
      }),
    );
    assertEquals(annotations, { readOnlyHint: false, idempotentHint: false, openWorldHint: false });
  });

  it("removes duplicate tags, roles and scopes", () => {
    const { tags, roles, scopes } = makeTool(
      definition({ tags: ["b", "a", "b"], roles: ["r", "r"], scopes: ["s", "s"] }),
    );
    assertEquals({ tags, roles, scopes }, { tags: ["b", "a"], roles: ["r"], scopes: ["s"] });
  });

  it("distinguishes empty roles from absent roles", () => {
    assertEquals(makeTool(definition({ roles: [] })).roles, []);
    assertEquals(makeTool(definition()).roles, undefined);
  });

  for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
    it(`makes a tool called "${name}"`, () => {
      assertEquals(makeTool(definition({ name })).id, name);
    });
  }

  it("reads a definition that is an instance of a class", () => {
    class Greeter {
      readonly name = "greet";
      readonly description = "Greets.";
      readonly #greeting = "Hello";
      execute(): string {
        return this.#greeting;
      }
    }
    const tool = makeTool(new Greeter());
    assertEquals(tool.execute?.({}, undefined as never), "Hello");
  });

  for (const method of data.methods) {
    it(`rejects an instance of a class whose ${method} should be execute`, () => {
      class Base {
        readonly name = "greet";
        readonly description = "Greets.";
        toString(): string {
          return this.name;
        }
        validate(): void {}
        get help(): string {
          return "It helps";
        }
      }
      class Greeter extends Base {}
      Object.defineProperty(Base.prototype, "other", { value: () => 1 });
      Object.defineProperty(Greeter.prototype, method, { value: () => "Hello" });
      for (
        const register of [makeTool, (tool: ToolDefinition) => new ToolRegistry({ tools: [tool] })]
      ) {
        const { message } = assertThrows(() => register(new Greeter()), TypeError);
        assertEquals(
          message,
          `Cannot define tool "greet": its class has the method "${method}" and no execute: ` +
            "rename it to execute, or set execute to undefined",
        );
      }
    });
  }

  it("accepts an instance of a class as a definition without execute only if it has no methods or is declared so", () => {
    class Plain {
      readonly name = "greet";
      readonly description = "Greets.";
    }
    class Silent extends Plain {
      readonly execute = undefined;
      greet(): string {
        return "Hello";
      }
    }
    for (
      const instance of [
        new Plain(),
        new Silent(),
        Object.create(null, {
          name: { value: "greet", enumerable: true },
          description: { value: "Greets.", enumerable: true },
        }),
      ]
    ) assertEquals(makeTool(instance).execute, undefined);
  });
});

describe("defineTool(), on immutability", () => {
  it("freezes the tool", () => assert(Object.isFrozen(makeTool(definition()))));

  it("freezes every list and object of it", () => {
    const tool = makeTool(definition({
      parameters: OBJECT,
      returns: OBJECT,
      config: OBJECT,
      tags: ["a"],
      roles: ["a"],
      scopes: ["a"],
      annotations: {},
      examples: [{ input: {} }],
      icons: [{ src: "x" }],
      meta: { a: {} },
    }));
    const loose = Object.entries(tool)
      .filter(([, value]) => typeof value === "object" && value !== null)
      .filter(([, value]) => !Object.isFrozen(value));
    assertEquals(loose, []);
    assert(Object.isFrozen(tool.parameters["properties"]));
  });

  it("is not changed by a change of the definition's data", () => {
    const parameters = { type: "object", properties: { a: { type: "string" } } };
    const tags = ["a"];
    const tool = makeTool(definition({ parameters, tags }));
    parameters.properties.a.type = "number";
    tags.push("b");
    assertEquals(tool.parameters, { type: "object", properties: { a: { type: "string" } } });
    assertEquals(tool.tags, ["a"]);
  });

  it("does not change the definition", () => {
    const plain = definition({ parameters: { type: "object" }, tags: ["a"] });
    makeTool(plain);
    assertEquals([plain, plain.parameters, plain.tags].map(Object.isFrozen), [false, false, false]);
  });
});

describe("defineTool(), on functions", () => {
  it("calls each as a method of the definition", async () => {
    const fields = {
      name: "count",
      description: "Counts.",
      count: 41,
      init() {
        return this.count;
      },
      dispose() {
        this.count = 0;
      },
      validate() {
        return `at ${this.count}`;
      },
      execute() {
        return this.count + 1;
      },
    };
    const { count: _count, ...known } = fields;
    const definition: ToolDefinition = Object.assign(Object.create({ count: 41 }), known);
    const { init, validate, execute, dispose } = makeTool(definition);
    assertEquals(await init?.(undefined as never), 41);
    assertEquals(await validate?.({}, undefined as never), "at 41");
    assertEquals(await execute?.({}, undefined as never), 42);
    await dispose?.(undefined as never);
    assertEquals(Object.entries(definition).at(-1), ["count", 0]);
  });

  it("preserves an async generator function", () => {
    const tool = makeTool(definition({
      async *execute() {
        yield await Promise.resolve(1);
      },
    }));
    const output = tool.execute?.({}, undefined as never) as object;
    assertEquals(Symbol.asyncIterator in output, true);
  });

  it("keeps isAvailable the function that it was", () => {
    const isAvailable = (): boolean => false;
    assertStrictEquals(makeTool(definition({ isAvailable })).isAvailable, isAvailable);
  });
});

describe("defineTool(), on schemas of libraries", () => {
  it("keeps the library's schema and its JSON Schema", () => {
    const parameters = librarySchema(OBJECT);
    const tool = makeTool(definition({ parameters }));
    assertEquals(tool.parameters, OBJECT);
    assertStrictEquals<unknown>(tool.parametersStandard, parameters);
  });

  it("uses the input schema for parameters and config, and the output schema for returns", () => {
    const schema = librarySchema({ type: "object", title: "in" }, { type: "object", title: "out" });
    const tool = makeTool(definition({ parameters: schema, returns: schema, config: schema }));
    assertEquals(tool.parameters["title"], "in");
    assertEquals(tool.returns, { type: "object", title: "out" });
    assertEquals(tool.config, { type: "object", title: "in" });
  });

  it("requests 2020-12", () => {
    const targets: string[] = [];
    const schema = {
      "~standard": {
        ...(librarySchema(OBJECT) as { "~standard": object })["~standard"],
        jsonSchema: {
          input: ({ target }: { target: string }) => {
            targets.push(target);
            return OBJECT;
          },
        },
      },
    };
    makeTool(definition({ parameters: schema }));
    assertEquals(targets, ["draft-2020-12"]);
  });

  it("accepts a library's schema that is a function", () => {
    const schema = Object.assign(() => 0, librarySchema(OBJECT));
    assertEquals(makeTool(definition({ parameters: schema })).parameters, OBJECT);
  });

  it("freezes a copy of the JSON Schema, not the library's own", () => {
    const own = { type: "object" };
    makeTool(definition({ parameters: librarySchema(own) }));
    assertEquals(Object.isFrozen(own), false);
  });

  it("rejects a schema without JSON Schema, and suggests a library", () => {
    const schema = { "~standard": { version: 1, vendor: "old", validate: () => ({ value: 1 }) } };
    assertThrows(
      () => makeTool(definition({ parameters: schema })),
      TypeError,
      'Cannot define tool "echo": old cannot make a JSON Schema of its parameters: ' +
        "use toJSONSchema (zod/mini), ",
    );
  });

  for (
    const [what, thrown, words] of [
      ["an error", new Error("no transforms"), "no transforms"],
      ["a string", "no transforms", "no transforms"],
      ["undefined", undefined, "nothing"],
    ] as const
  ) {
    it(`reports the reason of a library that threw ${what}`, () => {
      const schema = {
        "~standard": {
          version: 1,
          vendor: "fake",
          validate: () => ({ value: 1 }),
          jsonSchema: {
            input: () => {
              throw thrown;
            },
          },
        },
      };
      assertThrows(
        () => makeTool(definition({ parameters: schema })),
        TypeError,
        `Cannot define tool "echo": fake cannot make a JSON Schema of its parameters: ${words}`,
      );
    });
  }
});

describe("defineTool(), on a tool of another copy of plue", () => {
  const parameters = librarySchema(OBJECT);
  const original = makeTool(definition({
    namespace: "far",
    parameters,
    returns: true,
    tags: ["a"],
    deprecated: true,
    execute: () => 42,
  }));
  const foreign = { ...original };

  it("makes an equal tool", () => {
    const { execute: _execute, ...copy } = makeTool(foreign as ToolDefinition);
    const { execute: _original, ...expected } = original;
    assertEquals(copy, expected);
  });

  it("keeps its functions", () => {
    assertEquals(makeTool(foreign as ToolDefinition).execute?.({}, undefined as never), 42);
  });

  it("keeps the library schema that its parameters came from", () => {
    const tool = makeTool(foreign as ToolDefinition);
    assertStrictEquals<unknown>(tool.parametersStandard, parameters);
  });

  it("rejects an id that does not match its name", () => {
    assertThrows(
      () => makeTool({ ...foreign, name: "other" } as ToolDefinition),
      TypeError,
      'Cannot define tool "far:other": its id must be "far:other" (its namespace and name), ' +
        'not "far:echo"',
    );
  });
});

describe("defineTool(), on invalid definitions", () => {
  const holes: string[] = ["a"];
  holes.length = 2;
  const wrong: readonly (readonly [object, string])[] = [
    ...data.wrong as [object, string][],
    [{ description: undefined }, "its description must be a string that describes the tool"],
    [
      { parameters: { type: "object", default: NaN } },
      'its parameters: at "/default" it is NaN, which is not JSON',
    ],
    [{ returns: new Map() }, 'its returns: at "" it is an instance of Map'],
    [{ config: () => 0 }, "its config must be a JSON Schema or a Standard Schema"],
    [{ tags: holes }, "its tags must be a list of strings that are not empty"],
    [{ annotations: { title: () => 0 } }, 'its annotations: at "/title" it is a function'],
    [{ examples: [{ input: 1n }] }, 'its examples: at "/0/input" it is a bigint'],
    [{ timeoutMs: NaN }, "its timeoutMs must be a number of milliseconds from 1 to 2147483647"],
    [{ timeoutMs: Infinity }, "its timeoutMs must be a number of milliseconds from 1 to"],
    [{ meta: { at: new Date(0) } }, 'its meta: at "/at" it is an instance of Date'],
    [JSON.parse('{ "__proto__": 1 }'), '"/__proto__" is not one of its fields'],
  ];
  for (const [fields, words] of wrong) {
    const [[field, value] = ["", undefined]] = Object.entries(fields);
    it(`rejects ${field}: ${describeValue(value)}`, () => {
      const whole = { ...definition() };
      for (const [key, one] of Object.entries(fields)) {
        Object.defineProperty(whole, key, { value: one, enumerable: true });
      }
      const { message } = assertThrows(() => makeTool(whole), TypeError);
      assertEquals(message.startsWith('Cannot define tool "echo": '), true, message);
      assertEquals(message.includes(words), true, message);
    });
  }

  const rule = 'its name must be 1 to 128 letters, digits, "_", "." or "-", not ';
  for (const name of [undefined, ...data.names]) {
    it(`rejects the name ${describeValue(name)}`, () => {
      const { message } = assertThrows(() => makeTool(definition({ name })), TypeError);
      assertEquals(message.includes(rule), true, message);
      assertEquals(message.length < 200, true);
    });
  }

  it("rejects a namespace in the name together with a namespace", () => {
    const twice = definition({ name: "chain:status", namespace: "chain" });
    assertThrows(() => makeTool(twice), TypeError, `${rule}"chain:status"`);
  });

  for (const [word, field] of data.hints as [string, string][]) {
    it(`suggests "${field}" for "${word}"`, () => {
      assertThrows(
        () => makeTool(definition({ [word]: {} })),
        TypeError,
        `"/${word}" is not one of its fields: did you mean "${field}"?`,
      );
    });
  }

  it("lists the fields of a definition, without the fields of tools", () => {
    const { message } = assertThrows(() => makeTool(definition({ colour: 1 })), TypeError);
    const listed = message.split(", ");
    assertEquals(listed.includes("execute"), true);
    assertEquals(listed.filter((field) => /^id$|Standard/.test(field)), []);
  });

  for (const value of [undefined, null, "echo", 1, () => 0]) {
    it(`rejects ${describeValue(value)} instead of a definition`, () => {
      assertThrows(
        () => makeTool(value as unknown as ToolDefinition),
        TypeError,
        "Cannot define a tool: the definition must be an object",
      );
    });
  }

  it("reports the reason when a getter in the definition throws", () => {
    const parameters = Object.defineProperty({ type: "object" }, "properties", {
      get: () => {
        throw "not now";
      },
      enumerable: true,
    });
    assertThrows(
      () => makeTool(definition({ parameters })),
      TypeError,
      'Cannot define tool "echo": not now',
    );
  });
});

function describeValue(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    try {
      return JSON.stringify(value);
    } catch {
      return "an object that is not JSON";
    }
  }
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 20))
    : String(value).replaceAll("\n", " ");
}
