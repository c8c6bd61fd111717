import { resolverOf } from "../../../src/formats/transform/references.ts";
import {
  type Context,
  type NodePass,
  Report,
  runPass as runNodePass,
  type SchemaLoss,
} from "../../../src/formats/transform/report.ts";
import { Trace } from "../../../src/formats/transform/rewrite.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";

export type Rewritten = { readonly schema: JsonSchema; readonly losses: readonly SchemaLoss[] };

/** Runs one pass alone, as in a conversion that describes losses. */
export function runPass(
  pass: NodePass | ((schema: JsonSchema, context: Context) => JsonSchema),
  options: Partial<Context> = {},
): (schema: JsonSchema) => Rewritten {
  return (first) => {
    const trace = new Trace();
    const report = new Report(trace);
    const context: Context = {
      ...{ trace, report, resolve: resolverOf(first), describe: true, refuses: false },
      fateOf: () => "keep",
      ...options,
    };
    const schema = typeof pass === "function"
      ? pass(first, context)
      : runNodePass(pass, first, context);
    return { schema, losses: report.losses(first) };
  };
}
