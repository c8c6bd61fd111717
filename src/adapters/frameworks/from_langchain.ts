/** Tools of plue from the tools of LangChain JS, which is not imported. */

import * as check from "../../tool/mod.ts";
import { fail, isObject } from "../../tool/mod.ts";
import { ANY_CONTEXT, type ExistingToolsOptions, OPTIONS, withMetadata } from "./existing_tools.ts";

type Fields = { readonly [field: string]: unknown };

/**
 * Returns tools of LangChain JS (`tool()`, and subclasses of `StructuredTool`) as tools of plue.
 * LangChain converts the arguments, and runs its callbacks. The configuration of a call has the
 * call's id as `toolCall.id` and `toolCallId`, its signal, and the context of the call as `context`
 * and `configurable`.
 *
 * A text that is exactly the JSON of an object or a list is returned as that value. The artifact of
 * a result is `artifact` in its metadata.
 *
 * @example Usage
 * ```ts ignore
 * import { tool } from "@langchain/core/tools";
 *
 * const ping = tool(() => "pong", { name: "ping", description: "Answers.", schema: z.object({}) });
 * const registry = new ToolRegistry({ tools: fromLangChainTools([ping]) });
 * ```
 *
 * @throws {TypeError} If an entry is not a tool that LangChain runs, or a schema cannot be read.
 */
export function fromLangChainTools(
  tools: readonly object[],
  options: ExistingToolsOptions = {},
): check.Tool[] {
  const action = "read tools of LangChain";
  check.rejectUnknownFields(action, options, OPTIONS);
  const { namespace, risk } = options;
  return tools.map((tool, index) => {
    const { name, description, invoke } = tool as Fields;
    if (typeof name !== "string" || !check.isFunction(invoke)) {
      fail(action, `the entry ${index} is not a tool that LangChain runs`);
    }
    return check.makeTool({
      ...{ name, context: ANY_CONTEXT, parameters: parametersOf(action, tool) },
      description: `${description ?? ""}`.trim() || name,
      ...check.defined({ namespace, risk }),
      async execute(args, { callId, signal, context }) {
        const toolCall = { type: "tool_call", id: callId, name, args };
        const configurable = isObject(context) ? context : {};
        const config = { toolCall, toolCallId: callId, signal, context, configurable };
        return resultOf(await Reflect.apply(invoke, tool, [toolCall, config]));
      },
    });
  });
}

function parametersOf(action: string, tool: object): object {
  const { name, schema, constructor } = tool as Fields;
  if (Object(constructor).lc_name?.() === "DynamicTool") {
    // The function takes one text.
    return { type: "object", properties: { input: { type: "string" } } };
  }
  if (!check.isStandardSchema(schema)) return { ...Object(schema) };
  const { vendor, jsonSchema } = schema["~standard"];
  const advice = "convert it with toJsonSchema of @langchain/core";
  return jsonSchema === undefined
    ? fail(action, `${vendor} cannot make a JSON Schema of the schema of "${name}"; ${advice}`)
    : { ...Object(jsonSchema.input({ target: "draft-2020-12" })) };
}

function resultOf(output: unknown): unknown {
  const { content = output, status, artifact, tool_call_id } = Object(output);
  if (tool_call_id === undefined && Object(output).lg_name !== undefined) {
    throw new TypeError("Cannot return the result: only LangGraph can carry out a Command");
  }
  if (status === "error") return check.ToolResult.error(`${content}`);
  if (Array.isArray(content) && tool_call_id) {
    return withMetadata(content, check.defined({ artifact }));
  }
  if (artifact !== undefined) return withMetadata([{ text: `${content}` }], { artifact });
  if (typeof content !== "string" || !/^[[{]/.test(content)) return content;
  const value: unknown = check.attemptOr(undefined, () => JSON.parse(content));
  return JSON.stringify(value) === content ? value : content;
}
