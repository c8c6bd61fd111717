/** Tools of plue from the tools of the AI SDK, which is not imported. */

import * as check from "../../tool/mod.ts";
import {
  defined,
  fail,
  isFunction,
  isObject,
  type Tool,
  type ToolContext,
  ToolResult,
} from "../../tool/mod.ts";
import { ANY_CONTEXT, type ExistingToolsOptions, OPTIONS, withMetadata } from "./existing_tools.ts";

type Fields = { readonly [field: string]: unknown };

/**
 * Returns the tools of a `ToolSet` of the AI SDK (`ai` 6 and 7) as tools of plue, with the same
 * schemas and functions. `execute` receives the call's id and signal, and as `context` (and
 * `experimental_context`) the context of the call; `messages` is empty.
 *
 * A tool with `needsApproval` requires approval for each call, even if `needsApproval` is a
 * function. If a tool has `toModelOutput`, the model receives that, and the whole output is `output`
 * in the metadata.
 *
 * @example Usage
 * ```ts ignore
 * import { tool } from "ai";
 *
 * const ping = tool({ description: "Answers.", inputSchema: z.object({}), execute: () => "pong" });
 * const registry = new ToolRegistry({ tools: fromAiSdkTools({ ping }) });
 * ```
 *
 * @throws {TypeError} If a tool is defined by a provider, its description is a function, or a schema
 * cannot be read.
 */
export function fromAiSdkTools(
  tools: { readonly [name: string]: object },
  options: ExistingToolsOptions = {},
): Tool[] {
  check.rejectUnknownFields("read tools of the AI SDK", options, OPTIONS);
  return Object.entries(tools).map(([name, tool]) => toTool(name, tool as Fields, options));
}

function toTool(name: string, tool: Fields, options: ExistingToolsOptions): Tool {
  const { namespace, risk } = options;
  const action = `read the tool "${name}" of the AI SDK`;
  const { title, execute, toModelOutput, needsApproval = false, metadata } = tool;
  const { description = title ?? name, inputExamples, strict, deferLoading } = tool;
  if (tool["type"] === "provider") fail(action, "its provider runs it; keep it in the request");
  if (isFunction(description)) fail(action, "its description must be a text");
  const read = (field: string): unknown => schemaOf(`${action}: ${field}`, tool[field]);
  const provider = defined({ strict, deferLoading });
  const run = (input: unknown, context: ToolContext): check.ToolOutput<unknown> => {
    const { callId: toolCallId, signal: abortSignal, context: hostContext } = context;
    const call = { toolCallId, abortSignal, messages: [], context: hostContext ?? {} };
    const output: unknown = Reflect.apply(execute as () => unknown, tool, [
      input,
      { ...call, experimental_context: hostContext },
    ]);
    const result = async (output: unknown) =>
      isFunction(toModelOutput)
        ? resultOf(
          await Reflect.apply(toModelOutput, tool, [{ toolCallId, input, output }]),
          output,
        )
        : output;
    return isObject(output) && Symbol.asyncIterator in output
      ? lastOf(output as never, result)
      : isFunction(toModelOutput)
      ? Promise.resolve(output).then(result)
      : output;
  };
  return check.makeTool({
    ...{ name, description, context: read("contextSchema") ?? ANY_CONTEXT },
    ...defined({
      ...{ namespace, risk, title, execute: execute && run, examples: inputExamples },
      parameters: read("inputSchema"),
      // The schema describes the whole output, which a result of `toModelOutput` does not have.
      returns: toModelOutput === undefined ? read("outputSchema") : undefined,
    }),
    requiresApproval: needsApproval !== false,
    meta: { ...Object(metadata), ...(Object.keys(provider).length > 0 && { provider }) },
  } as check.ToolDefinition);
}

/** Returns a schema with the SDK's validation, if it has any. */
function schemaOf(action: string, schema: unknown): unknown {
  // `lazySchema` of the SDK returns a function that creates the schema.
  const wrapped = isFunction(schema) && !check.isStandardSchema(schema) ? schema() : schema;
  if (!isObject(wrapped) || !(Symbol.for("vercel.ai.schema") in wrapped)) return wrapped;
  const { jsonSchema, validate } = wrapped;
  if (check.isThenable(jsonSchema)) fail(action, "it is a promise; await it first");
  if (!isFunction(validate)) return { ...Object(jsonSchema) };
  const convert = (): unknown => jsonSchema;
  const validateBySdk = async (value: unknown): Promise<object> => {
    const result = Object(await Reflect.apply(validate, wrapped, [value]));
    const { issues = [{ message: `${result.error?.message}` }] } = Object(result.error);
    return result.success === true ? { value: result.value } : { issues };
  };
  const standard = { version: 1, vendor: "ai", validate: validateBySdk };
  return { "~standard": { ...standard, jsonSchema: { input: convert, output: convert } } };
}

async function* lastOf(
  outputs: AsyncIterable<unknown>,
  result: (output: unknown) => Promise<unknown>,
): AsyncGenerator<unknown, unknown, void> {
  let last: unknown;
  for await (last of outputs) yield last;
  return await result(last);
}

/** Returns an output in the form for the model, and the whole output as metadata. */
function resultOf(written: unknown, output: unknown): ToolResult {
  const { type, value, reason = "the call was denied" } = Object(written);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (type === "execution-denied") return ToolResult.error("denied", reason);
  if (`${type}`.startsWith("error")) return ToolResult.error(text);
  return withMetadata(type === "content" ? value : [{ text }], defined({ output }));
}
