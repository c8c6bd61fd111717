/** Google's protos, walked here, because protobufjs ignores unknown fields and enum values. */

import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { createRequire } from "node:module";
import protobuf from "protobufjs";
import { exportTools } from "../../src/formats/mod.ts";
import { makeTool } from "../../src/tool/mod.ts";
import { aToolSchema } from "../support/arbitrary_schema.ts";
import { ALL } from "./tools.ts";

// The same cases on every runtime and in every run. To search for new ones, leave the seed out.
fc.configureGlobal({ seed: 20261120 });

const require = createRequire(import.meta.url);

function toolOf(file: string, name: string): protobuf.Type {
  return protobuf.Root.fromJSON(require(file)).lookupType(name);
}

const GEMINI = toolOf(
  "@google-ai/generativelanguage/build/protos/protos.json",
  "google.ai.generativelanguage.v1beta.Tool",
);
const VERTEX = toolOf(
  "@google-cloud/aiplatform/build/protos/protos.json",
  "google.cloud.aiplatform.v1.Tool",
);

const is64Bit = (type: string): boolean => /^(u?int|s?fixed|sint)64$/.test(type);

/** Returns the problem in the JSON of a scalar. */
function scalarFault(type: string, value: unknown): string | undefined {
  const right = type === "string"
    ? typeof value === "string"
    : type === "bool"
    ? typeof value === "boolean"
    : is64Bit(type)
    ? typeof value === "string" && /^-?\d+$/.test(value)
    : typeof value === "number";
  return right ? undefined : `${JSON.stringify(value)} is no ${type}`;
}

/** Returns the parts of `value` that the proto does not define, each with its path. */
function faults(type: protobuf.Type, value: unknown, path = ""): readonly string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return [`${path}: ${JSON.stringify(value)} is no ${type.name}`];
  }
  return Object.entries(value).flatMap(([name, content]) => {
    const at = `${path}/${name}`;
    const field = type.fields[name]?.resolve();
    if (field === undefined) return [`${at}: Unknown name`];
    const one = (item: unknown, where: string): readonly string[] => {
      // Any JSON.
      if (field.type === "google.protobuf.Value") return [];
      if (field.resolvedType instanceof protobuf.Enum) {
        return Object.hasOwn(field.resolvedType.values, String(item))
          ? []
          : [`${where}: ${JSON.stringify(item)} is no ${field.type}`];
      }
      if (field.resolvedType instanceof protobuf.Type) {
        return faults(field.resolvedType, item, where);
      }
      const fault = scalarFault(field.type, item);
      return fault === undefined ? [] : [`${where}: ${fault}`];
    };
    if (field instanceof protobuf.MapField) {
      return Object.entries(content as object).flatMap(([key, item]) => one(item, `${at}/${key}`));
    }
    if (!field.repeated) return one(content, at);
    if (!Array.isArray(content)) return [`${at}: it is no list`];
    return content.flatMap((item, index) => one(item, `${at}/${index}`));
  });
}

/** Returns the tools as a client would serialize them. */
const sent = (tools: unknown): readonly unknown[] => JSON.parse(JSON.stringify(tools));

describe("the walk through a proto", () => {
  it("finds values that the proto does not define", () => {
    const parameters = {
      type: "object",
      minLength: 1,
      exclusiveMinimum: 0,
      enum: [1],
      properties: { a: { const: 1 } },
    };
    assertEquals(
      faults(GEMINI, { functionDeclarations: [{ name: "a", inputSchema: {}, parameters }] }),
      [
        "/functionDeclarations/0/inputSchema: Unknown name",
        '/functionDeclarations/0/parameters/type: "object" is no Type',
        "/functionDeclarations/0/parameters/minLength: 1 is no int64",
        "/functionDeclarations/0/parameters/exclusiveMinimum: Unknown name",
        "/functionDeclarations/0/parameters/enum/0: 1 is no string",
        "/functionDeclarations/0/parameters/properties/a/const: Unknown name",
      ],
    );
  });
});

describe("Google's protos", () => {
  const anyParameters = aToolSchema();

  for (
    const [target, proto] of [
      ["gemini", GEMINI],
      ["gemini.typed", GEMINI],
      ["gemini.typed", VERTEX],
      ["vertex", VERTEX],
    ] as const
  ) {
    it(`contain every field of ${target} in ${proto.fullName}`, () => {
      const tools = sent(exportTools(ALL, target).tools);
      assertEquals(tools.length, 1);
      assertEquals(faults(proto, tools[0]), []);
    });

    it(`contain every field of any schema for ${target} in ${proto.fullName}`, () => {
      fc.assert(
        fc.property(anyParameters, anyParameters, (parameters, returns) => {
          const tool = makeTool({ name: "any", description: "Does it.", parameters, returns });
          for (const entry of sent(exportTools([tool], target).tools)) {
            assertEquals(faults(proto, entry), []);
          }
        }),
        { numRuns: 300 },
      );
    });
  }
});
