/** The tools of MCP's conformance suite. */

import { defineTool, type Tool, ToolResult } from "@plue/tools";

/** One red pixel. */
export const PNG: string =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** No samples. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const resource = (uri: string, text: string): {
  readonly type: "resource";
  readonly resource: { readonly uri: string; readonly mimeType: string; readonly text: string };
} => ({ type: "resource", resource: { uri, mimeType: "text/plain", text } });

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

/** Makes the tools. `change` changes the list of tools, and `changePrompts` the list of prompts. */
export function conformanceTools(change: () => void, changePrompts: () => void): readonly Tool[] {
  return [
    defineTool({
      name: "test_logging_tool",
      description: "Sends a log message, which only clients get that asked for them.",
      execute(_, { metadata }) {
        metadata("This is a log message.");
        return "Logged.";
      },
    }),
    defineTool({
      name: "test_trigger_tool_change",
      description: "Changes the set of tools.",
      execute: change,
    }),
    defineTool({
      name: "test_trigger_prompt_change",
      description: "Announces a change of the prompts.",
      execute: changePrompts,
    }),
    defineTool({
      name: "test_simple_text",
      description: "Answers a text.",
      execute: () => "This is a simple text response for testing.",
    }),
    defineTool({
      name: "test_image_content",
      description: "Answers an image.",
      execute: () => ToolResult.blocks([{ type: "image", data: PNG, mimeType: "image/png" }]),
    }),
    defineTool({
      name: "test_audio_content",
      description: "Answers sound.",
      execute: () => ToolResult.blocks([{ type: "audio", data: WAV, mimeType: "audio/wav" }]),
    }),
    defineTool({
      name: "test_embedded_resource",
      description: "Answers a resource.",
      execute: () =>
        ToolResult.blocks([
          resource("test://embedded-resource", "This is an embedded resource content."),
        ]),
    }),
    defineTool({
      name: "test_multiple_content_types",
      description: "Answers a text, an image and a resource.",
      execute: () =>
        ToolResult.blocks([
          { type: "text", text: "Multiple content types test:" },
          { type: "image", data: PNG, mimeType: "image/png" },
          resource("test://mixed-content-resource", '{"test":"data","value":123}'),
        ]),
    }),
    defineTool({
      name: "test_tool_with_logging",
      description: "Sends log messages while it runs.",
      async execute(_, { metadata }) {
        for (const text of ["started", "processing data", "completed"]) {
          metadata(`Tool execution ${text}`);
          await pause();
        }
        return "Logged three messages.";
      },
    }),
    defineTool({
      name: "test_error_handling",
      description: "Fails.",
      execute: () => ToolResult.error("threw", "This tool intentionally returns an error"),
    }),
    defineTool({
      name: "test_tool_with_progress",
      description: "Says how far it has come.",
      async execute(_, { progress }) {
        for (const done of [0, 50, 100]) {
          progress(done, 100, `Completed step ${done} of 100`);
          await pause();
        }
        return "Came to the end.";
      },
    }),
    defineTool({
      name: "json_schema_2020_12_tool",
      description: "Has a schema with what is new in JSON Schema 2020-12.",
      parameters: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: {
          address: {
            $anchor: "addressDef",
            type: "object",
            properties: { street: { type: "string" }, city: { type: "string" } },
          },
        },
        properties: {
          name: { type: "string" },
          address: { $ref: "#/$defs/address" },
          contactMethod: { type: "string", enum: ["phone", "email"] },
          phone: { type: "string" },
          email: { type: "string" },
        },
        allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
        if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
        then: { required: ["phone"] },
        else: { required: ["email"] },
        additionalProperties: false,
      },
      execute: (params) => `Received ${JSON.stringify(params)}`,
    }),
    defineTool({
      name: "test_x_mcp_header",
      description: "Has arguments that are sent as headers too.",
      parameters: {
        type: "object",
        properties: {
          region: { type: "string", "x-mcp-header": "Region" },
          priority: { type: "integer", "x-mcp-header": "Priority" },
          verbose: { type: "boolean", "x-mcp-header": "Verbose" },
          query: { type: "string" },
        },
      },
      execute: (params) => `Received ${JSON.stringify(params)}`,
    }),
  ];
}
