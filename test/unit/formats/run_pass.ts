import { type Context, Report, type SchemaLoss } from "../../../src/formats/transform/report.ts";
import { Trace } from "../../../src/formats/transform/trace.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";

export interface Rewritten {
  readonly schema: JsonSchema;
  readonly losses: readonly SchemaLoss[];
}

/** Runs one pass by itself, as a conversion runs it that describes what is lost. */
export function runPass(
  pass: (schema: JsonSchema, context: Context) => JsonSchema,
  options: Partial<Context> = {},
): (schema: JsonSchema) => Rewritten {
  return (first) => {
    const trace = new Trace();
    const report = new Report(trace);
    const context = { describe: true, refuses: false, fateOf: () => "keep" as const, ...options };
    const schema = pass(first, { ...context, trace, report });
    return { schema, losses: report.losses(first) };
  };
}
