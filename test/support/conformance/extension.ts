/** The prompts, resources and completion that MCP's conformance suite uses. */

import {
  completable,
  inputRequired,
  inputResponse,
  type McpServer,
  type PromptMessage,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { PNG } from "./tools.ts";

const user = (text: string): PromptMessage => ({ role: "user", content: { type: "text", text } });

/** Registers them on the server of one request. */
export function extend(server: McpServer): void {
  registerPrompts(server);
  registerResources(server);
}

function registerPrompts(server: McpServer): void {
  server.registerPrompt("test_simple_prompt", { description: "Has no arguments." }, () => ({
    messages: [user("This is a simple prompt for testing.")],
  }));
  server.registerPrompt("test_prompt_with_arguments", {
    description: "Has two arguments, and completes the first.",
    argsSchema: z.object({
      arg1: completable(
        z.string(),
        (start) => ["paris", "park", "party"].filter((word) => word.startsWith(start)),
      ),
      arg2: z.string(),
    }),
  }, ({ arg1, arg2 }) => ({
    messages: [user(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  }));
  server.registerPrompt("test_prompt_with_embedded_resource", {
    description: "Has a resource in it.",
    argsSchema: z.object({ resourceUri: z.string() }),
  }, ({ resourceUri: uri }) => ({
    messages: [{
      role: "user",
      content: {
        type: "resource",
        resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." },
      },
    }, user("Please process the embedded resource above.")],
  }));
  server.registerPrompt("test_prompt_with_image", { description: "Has an image in it." }, () => ({
    messages: [
      { role: "user", content: { type: "image", data: PNG, mimeType: "image/png" } },
      user("Please analyze the image above."),
    ],
  }));
  server.registerPrompt(
    "test_input_required_result_prompt",
    { description: "Asks for its context." },
    ({ mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "user_context");
      if (answer.kind !== "elicit" || answer.action !== "accept") {
        return inputRequired({
          inputRequests: {
            user_context: inputRequired.elicit({
              message: "What context should the prompt use?",
              requestedSchema: {
                type: "object",
                properties: { context: { type: "string" } },
                required: ["context"],
              },
            }),
          },
        });
      }
      return { messages: [user(`Use this context: ${answer.content?.["context"]}`)] };
    },
  );
}

function registerResources(server: McpServer): void {
  server.server.registerCapabilities({ resources: { subscribe: true } });
  server.registerResource(
    "static-text",
    "test://static-text",
    { description: "A text.", mimeType: "text/plain" },
    ({ href: uri }) => ({
      contents: [{
        uri,
        mimeType: "text/plain",
        text: "This is the content of the static text resource.",
      }],
    }),
  );
  server.registerResource(
    "static-binary",
    "test://static-binary",
    { description: "An image.", mimeType: "image/png" },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: "image/png", blob: PNG }] }),
  );
  server.registerResource(
    "watched-resource",
    "test://watched-resource",
    { description: "A text that clients subscribe to.", mimeType: "text/plain" },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: "text/plain", text: "Watched." }] }),
  );
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { description: "Data by id.", mimeType: "application/json" },
    ({ href: uri }, { id }) => ({
      contents: [{
        uri,
        mimeType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
      }],
    }),
  );
}
