/** Stand-ins for the tests of the registry. */

import {
  createToolIndex,
  ToolRegistry,
  type ToolRegistryOptions,
} from "../../../src/registry/mod.ts";
import { type SchemaEngine, withSchemaCheck } from "../../../src/schema/mod.ts";
import { makeTool, type Tool, type ToolDefinition } from "../../../src/tool/mod.ts";

/** An engine that checks `required` of objects, and nothing else. Counts the compiled schemas. */
export function requiredOnlyEngine(): SchemaEngine & { compiled: number } {
  const engine = { ...withSchemaCheck({ name: "required-only", compile }), compiled: 0 };
  return engine;

  function compile(schema: unknown) {
    engine.compiled++;
    const { required = [] } = schema as { readonly required?: readonly string[] };
    const missing = (value: unknown) =>
      required.filter((key) => !Object.hasOwn(value as object, key));
    return {
      check: (value: unknown) => missing(value).length === 0,
      issues: (value: unknown) =>
        missing(value).map((key) => ({
          path: "",
          keyword: "required",
          expected: `the property "${key}"`,
          message: `must have the property "${key}"`,
        })),
    };
  }
}

/** A registry with that engine, and plue's index. */
export function fakeRegistry(options: Partial<ToolRegistryOptions> = {}): ToolRegistry {
  return new ToolRegistry({ engine: requiredOnlyEngine(), index: createToolIndex, ...options });
}

/** A tool with an id and optional other fields. */
export function fakeTool(id: string, fields: Partial<ToolDefinition> = {}): Tool {
  const [first = "", second] = id.split(":");
  return makeTool({
    name: second ?? first,
    namespace: second === undefined ? undefined : first,
    description: `The tool ${id}.`,
    ...fields,
  });
}
