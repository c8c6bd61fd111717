import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, isTool, makeTool, type ToolDefinition } from "../../../src/tool/mod.ts";
import { ToolRegistry } from "../../../mod.ts";

/** A definition with only what is required, and `fields`. Types are left aside: this is input. */
function definition(fields: Readonly<Record<string, unknown>> = {}): ToolDefinition {
  return { name: "echo", description: "Says it again.", ...fields } as ToolDefinition;
}

/** A schema of a library, which gives `input` and `output` as its JSON Schema. */
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
  it("fills in everything that was not said", () => {
    const tool = defineTool({ name: "echo", description: "Says it again." });
    assertEquals(
      tool,
      {
        id: "echo",
        name: "echo",
        namespace: undefined,
        aliases: [],
        view: undefined,
        title: undefined,
        description: "Says it again.",
        describe: undefined,
        version: undefined,
        parameters: { type: "object", properties: {}, additionalProperties: false },
        returns: undefined,
        parametersStandard: undefined,
        returnsStandard: undefined,
        category: undefined,
        risk: "medium",
        tags: [],
        roles: undefined,
        scopes: [],
        requiresTransaction: false,
        requiresApproval: false,
        isAvailable: true,
        unavailableReason: undefined,
        annotations: {
          readOnlyHint: false,
          idempotentHint: false,
        },
        examples: [],
        icons: [],
        deprecated: false,
        timeoutMs: undefined,
        outputOverflow: undefined,
        idempotent: false,
        execution: "either",
        config: undefined,
        context: undefined,
        meta: undefined,
        init: undefined,
        dispose: undefined,
        validate: undefined,
        execute: undefined,
      } as unknown as typeof tool,
    );
  });

  it("keeps everything that was said", () => {
    const said = {
      name: "status",
      namespace: "chain",
      title: "Status",
      description: "Where the chain is.",
      version: "1.2.0-beta.1+build.5",
      parameters: OBJECT,
      returns: { type: "string" },
      category: "workspace",
      risk: "high",
      tags: ["chain", "read"],
      roles: ["control"],
      scopes: ["chain.read"],
      requiresTransaction: true,
      requiresApproval: true,
      isAvailable: false,
      examples: [{ description: "one", input: { a: "x" }, output: "y" }],
      icons: [{ src: "data:,", mimeType: "image/png", sizes: ["1x1"], theme: "dark" }],
      deprecated: "Use chain:state",
      timeoutMs: 100,
      idempotent: true,
      config: { type: "object" },
      context: { type: "object", required: ["tenant"] },
      meta: { anthropic: { cache: true } },
    };
    const tool = makeTool(said as unknown as ToolDefinition);
    for (const [field, value] of Object.entries(said)) {
      assertEquals([field, tool[field as "meta"]], [field, value] as unknown);
    }
    assertEquals(tool.id, "chain:status");
  });

  // The specification's "Tool Definition Pattern", word for word.
  it("takes the specification's own pattern", () => {
    const { id, namespace, name, roles, allowedRoles } = makeTool({
      name: "chain:status",
      description: "Get the status of a task chain",
      parameters: {
        type: "object",
        properties: {
          chainId: { type: "string", description: "Chain ID (e.g., CHAIN-037-agent-runtime-core)" },
        },
        required: ["chainId"],
      },
      allowedRoles: ["control", "impl"],
    });
    assertEquals({ id, namespace, name, roles, allowedRoles }, {
      id: "chain:status",
      namespace: "chain",
      name: "status",
      roles: ["control", "impl"],
      allowedRoles: ["control", "impl"],
    });
  });

  it("has its roles under both names, and gives them to a copy once", () => {
    const tool = makeTool(definition({ roles: ["control"] }));
    assertStrictEquals(tool.allowedRoles, tool.roles);
    assertEquals(Object.keys(tool).includes("allowedRoles"), false);
    assertEquals(makeTool({ ...tool, roles: ["impl"] }).allowedRoles, ["impl"]);
    assertEquals(makeTool(definition()).allowedRoles, undefined);
    // As another copy of plue makes it.
    const other = Object.defineProperty({ ...tool }, "allowedRoles", { value: tool.roles });
    assertEquals(makeTool(other).allowedRoles, ["control"]);
  });

  it("gives a tool the same id, with a separate namespace or one in the name", () => {
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

  it("lets a word of the author go before a derived hint", () => {
    const { annotations } = makeTool(
      definition({
        risk: "safe",
        tags: ["read-only"],
        annotations: { readOnlyHint: false, openWorldHint: false },
      }),
    );
    assertEquals(annotations, {
      readOnlyHint: false,
      idempotentHint: false,
      openWorldHint: false,
    });
  });

  it("takes each tag, role and scope once", () => {
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

  const METHODS = [
    ...[
      "executeAsync",
      "execute_async",
      "executeFn",
      "run",
      "runAsync",
      "call",
      "invoke",
      "handler",
    ],
    ...["handle", "func", "Execute", "excute", "perform", "greet"],
  ];
  for (const method of METHODS) {
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

  for (const field of ["executeAsync", "run", "invoke", "handler", "func", "call"]) {
    it(`rejects the field ${field}, and suggests execute`, () => {
      assertThrows(
        () => makeTool(definition({ [field]: () => 1 })),
        TypeError,
        `"/${field}" is not one of its fields: did you mean "execute"?`,
      );
    });
  }
});

describe("defineTool(), on what cannot be changed later", () => {
  it("freezes the tool", () => {
    assert(Object.isFrozen(makeTool(definition())));
  });

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

  it("leaves the definition unchanged", () => {
    const said = definition({ parameters: { type: "object" }, tags: ["a"] });
    makeTool(said);
    assertEquals([said, said.parameters, said.tags].map(Object.isFrozen), [false, false, false]);
  });
});

describe("defineTool(), on functions", () => {
  it("calls each as a method of the definition", async () => {
    const said = {
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
    const { count: _count, ...known } = said;
    const definition: ToolDefinition = Object.assign(Object.create({ count: 41 }), known);
    const { init, validate, execute, dispose } = makeTool(definition);
    assertEquals(await init?.(undefined as never), 41);
    assertEquals(await validate?.({}, undefined as never), "at 41");
    assertEquals(await execute?.({}, undefined as never), 42);
    await dispose?.(undefined as never);
    assertEquals(Object.entries(definition).at(-1), ["count", 0]);
  });

  it("keeps an async generator one", () => {
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

  it("takes a library's schema that is a function", () => {
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
      'Cannot define tool "echo": old cannot give the JSON Schema of its parameters: ' +
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
        `Cannot define tool "echo": fake cannot give the JSON Schema of its parameters: ${words}`,
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

  it("keeps what it runs", () => {
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

describe("defineTool(), on definitions that are wrong", () => {
  const rule = 'must be 1 to 128 letters, digits, "_", "." or "-"';
  const words = "must be a list of strings that are not empty";
  const risk = "must be one of safe, low, medium, high, critical, not";
  const time = "its timeoutMs must be a number of milliseconds from 1 to 2147483647";
  const hints =
    "its annotations must be an object in which readOnlyHint, destructiveHint, idempotentHint, " +
    "openWorldHint are true or false";
  const examples = 'its examples must be a list of objects, each with "input"';
  const icons = 'its icons must be a list of objects, each with a "src" string';
  const holes: string[] = ["a"];
  holes.length = 2;

  const wrong: readonly (readonly [Record<string, unknown>, string])[] = [
    [{ namespace: "" }, `its namespace ${rule}`],
    [{ namespace: "a:b" }, `its namespace ${rule}`],
    [{ namespace: null }, `its namespace ${rule}`],
    [{ title: 1 }, "its title must be a string"],
    [{ description: undefined }, "its description must be a string that says what it does"],
    [{ description: " \n" }, "its description must be a string that says what it does"],
    [{ description: {} }, "its description must be a string"],
    [{ version: 1 }, 'its version must be a semantic version such as "1.2.0", not 1'],
    [{ version: "1.2" }, 'its version must be a semantic version such as "1.2.0", not "1.2"'],
    [{ version: "1.2.0\n" }, "its version must be a semantic version"],
    [{ parameters: null }, "its parameters must be a JSON Schema or a Standard Schema"],
    [{ parameters: [] }, "its parameters must be a JSON Schema or a Standard Schema"],
    [{ parameters: "object" }, "its parameters must be a JSON Schema or a Standard Schema"],
    [{ parameters: true }, 'its parameters must be an object schema: "/type" must be "object"'],
    [{ parameters: {} }, 'its parameters must be an object schema: "/type" must be "object"'],
    [{ parameters: { type: ["object"] } }, '"/type" must be "object"'],
    [
      { parameters: { type: "object", default: NaN } },
      'its parameters: at "/default" it is NaN, which is not JSON',
    ],
    [{ returns: 1 }, "its returns must be a JSON Schema or a Standard Schema"],
    [{ returns: new Map() }, 'its returns: at "" it is an instance of Map'],
    [{ config: () => 0 }, "its config must be a JSON Schema or a Standard Schema"],
    [{ category: "" }, "its category must be a string that is not empty"],
    [{ category: "FileSystem" }, 'its category is "FileSystem": did you mean "filesystem"?'],
    [{ category: "file-system" }, 'its category is "file-system": did you mean "filesystem"?'],
    [{ category: 1 }, "its category must be a string that is not empty"],
    [{ risk: "extreme" }, `its risk ${risk} "extreme"`],
    [{ risk: null }, `its risk ${risk} null`],
    [{ risk: "constructor" }, `its risk ${risk} "constructor"`],
    [{ tags: "a" }, `its tags ${words}`],
    [{ tags: [1] }, `its tags ${words}`],
    [{ tags: holes }, `its tags ${words}`],
    [{ roles: [""] }, `its roles ${words}`],
    [{ roles: null }, `its roles ${words}`],
    [{ scopes: {} }, `its scopes ${words}`],
    [{ requiresTransaction: "yes" }, "its requiresTransaction must be true or false"],
    [{ requiresApproval: null }, "its requiresApproval must be true or false"],
    [{ idempotent: 1 }, "its idempotent must be true or false"],
    [{ isAvailable: "no" }, "its isAvailable must be true, false or a function"],
    [{ isAvailable: null }, "its isAvailable must be true, false or a function"],
    [{ annotations: "safe" }, hints],
    [{ annotations: [] }, hints],
    [{ annotations: { readOnlyHint: "yes" } }, hints],
    [{ annotations: { title: () => 0 } }, 'its annotations: at "/title" it is a function'],
    [{ examples: {} }, examples],
    [{ examples: ["a"] }, examples],
    [{ examples: [{ output: 1 }] }, examples],
    [{ examples: [{ input: 1n }] }, 'its examples: at "/0/input" it is a bigint'],
    [{ icons: "x.png" }, icons],
    [{ icons: [{ src: 1 }] }, icons],
    [{ deprecated: 1 }, "its deprecated must be true, false or a sentence"],
    [{ timeoutMs: 0 }, time],
    [{ timeoutMs: 0.5 }, time],
    [{ timeoutMs: -1 }, time],
    [{ timeoutMs: NaN }, time],
    [{ timeoutMs: Infinity }, time],
    [{ timeoutMs: 2 ** 31 }, time],
    [{ timeoutMs: "100" }, time],
    [{ meta: "x" }, "its meta must be an object"],
    [{ meta: { at: new Date(0) } }, 'its meta: at "/at" it is an instance of Date'],
    [{ init: 1 }, "its init must be a function"],
    [{ dispose: {} }, "its dispose must be a function"],
    [{ validate: null }, "its validate must be a function"],
    [{ execute: "echo" }, "its execute must be a function"],
    [{ allowedRoles: "control" }, `its allowedRoles ${words}`],
    [
      { roles: ["control"], allowedRoles: ["impl"] },
      "its roles and its allowedRoles differ: give one of them",
    ],
    [{ colour: "red" }, '"/colour" is not one of its fields: name,'],
    [
      JSON.parse('{ "__proto__": 1 }') as Record<string, unknown>,
      '"/__proto__" is not one of its fields',
    ],
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

  for (
    const name of [undefined, null, 1, "", "a b", "a:b:c", ":a", "a:", "a:b c", "a".repeat(129)]
  ) {
    it(`rejects the name ${describeValue(name)}`, () => {
      const { message } = assertThrows(() => makeTool(definition({ name })), TypeError);
      assertEquals(message.includes(`: its name ${rule}, not `), true, message);
      assertEquals(message.length < 200, true);
    });
  }

  it("rejects a namespace in the name together with a namespace", () => {
    assertThrows(
      () => makeTool(definition({ name: "chain:status", namespace: "chain" })),
      TypeError,
      `Cannot define a tool: its name ${rule}, not "chain:status"`,
    );
  });

  for (
    const [word, field] of [
      ["inputSchema", "parameters"],
      ["input_schema", "parameters"],
      ["parameters_schema", "parameters"],
      ["outputSchema", "returns"],
      ["returns_schema", "returns"],
      ["returnsSchema", "returns"],
      ["parametersSchema", "parameters"],
      ["handler", "execute"],
      ["executeFn", "execute"],
      ["initFn", "init"],
      ["riskLevel", "risk"],
      ["timeout", "timeoutMs"],
      ["tag", "tags"],
    ] as const
  ) {
    it(`suggests "${field}" for "${word}"`, () => {
      assertThrows(
        () => makeTool(definition({ [word]: {} })),
        TypeError,
        `Cannot define tool "echo": "/${word}" is not one of its fields: ` +
          `did you mean "${field}"?`,
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
