/**
 * The examples of a tool on the wire. A provider that has a field for them refuses the whole
 * request for one that does not fit, so those are left out.
 *
 * @module
 */

import { compileOnce, type SchemaEngine } from "../schema/mod.ts";
import { type JsonSchemaObject, pointerStep, type Tool } from "../tool/mod.ts";
import { encodeArguments } from "./rewrite_arguments.ts";
import { fitsStructure } from "./structural_check.ts";
import { isNode } from "./transform/schema_walk.ts";
import type { ArgumentRewrite, Loss } from "./types.ts";

/** An example as it is sent. */
export interface WireExample {
  /** The arguments, as the exported schema has them. */
  readonly input: { readonly [key: string]: unknown };
  readonly description: string | undefined;
}

/**
 * The examples that fit the exported schema.
 *
 * @param schema The exported schema.
 * @param engine Checks them whole; without it their structure is checked.
 * @param losses Is told of those that do not fit.
 */
export function exportExamples(
  tool: Tool,
  schema: JsonSchemaObject,
  rewrite: ArgumentRewrite | undefined,
  engine: SchemaEngine | undefined,
  losses: Loss[],
): readonly WireExample[] {
  if (tool.examples.length === 0) return [];
  const fits = checkerOf(schema, engine);
  const sent: WireExample[] = [];
  for (const [index, { input: own, description }] of tool.examples.entries()) {
    const input = encodeArguments(own, rewrite);
    if (isNode(input) && fits(input)) {
      sent.push({ input, description });
      continue;
    }
    losses.push(Object.freeze({
      tool: tool.id,
      side: "tool",
      path: `/examples${pointerStep(String(index))}`,
      keyword: "examples",
      action: "dropped",
      grade: "lost",
      widens: false,
      narrows: false,
      message: "the example does not fit the schema that is sent: the request would be refused",
    }));
  }
  return sent;
}

function checkerOf(
  schema: JsonSchemaObject,
  engine: SchemaEngine | undefined,
): (value: unknown) => boolean {
  if (engine !== undefined) {
    try {
      const validator = compileOnce(engine, schema);
      return (value) => validator.check(value);
    } catch {
      // What the engine cannot compile is checked as if there were none.
    }
  }
  return (value) => fitsStructure(schema, value);
}
