/** Validates the host's context with the schema of a tool, and passes it to the tool. */

import * as schemas from "../../schema/mod.ts";
import { isStandardSchema, type ToolFailure, ToolResult } from "../../tool/mod.ts";
import { readJson } from "../json_value.ts";
import type { Call, Layer } from "../layer.ts";

/**
 * Creates a layer that validates the host's context for tools that declare a `context`, and passes
 * the context to these tools. With an invalid context, their calls fail with `unavailable`, and
 * only `onError` receives its content. The model cannot repair the context. Stage `input`.
 */
export function hostContext(): Layer {
  const checked: WeakMap<Call, unknown> = new WeakMap();
  return {
    name: "host-context",
    stage: "input",
    meets: "context",
    context: { context: (call) => checked.get(call) },
    for: ({ context: schema }, { engine }) =>
      schema === undefined ? undefined : (call, next) => {
        const accept = ({ issues, value }: schemas.StandardOutcome) => {
          if (issues !== undefined) return wrongContext(call, issues);
          checked.set(call, value);
          return next(call);
        };
        const context = call.options.context;
        const outcome = isStandardSchema(schema)
          ? schemas.validateStandard(schema, context)
          : check(schemas.compileOnce(engine, schema), context);
        return outcome instanceof Promise
          ? call.wait("checking its context", outcome).then(accept)
          : accept(outcome);
      },
  };
}

function check(validator: schemas.SchemaValidator, context: unknown): schemas.StandardOutcome {
  // Copied, so that a tool that writes to its context does not change other calls' contexts.
  const read = readJson(context, Infinity, true);
  const value = "value" in read ? read.value : context;
  const issues = schemas.issuesOf(validator, value);
  return issues === undefined ? { value } : { issues };
}

function wrongContext(call: Call, issues: readonly { readonly message: string }[]): ToolFailure {
  const { tool: { id }, options } = call;
  const how = options.context === undefined ? "gave no context" : "gave a wrong context";
  const messages = issues.map(({ message }) => message).join("; ");
  // Only `onError` receives the content of the context, which is not for the model.
  call.report("context", new TypeError(`The host ${how} for "${id}": ${messages}`));
  return ToolResult.error(
    "unavailable",
    `Cannot call "${id}": its host ${how}; the arguments are not the cause`,
    { retryable: false },
  );
}
