/** The tools of MCP's conformance suite that ask the client's user, without removed requests. */

import * as plue from "@plue/tools";

const form = (
  message: string,
  properties: { readonly [name: string]: plue.JsonSchema },
): plue.QuestionFields => ({
  message,
  schema: { type: "object", properties, required: Object.keys(properties) },
});

const NAME: plue.QuestionFields = form("What is your name?", { name: { type: "string" } });
const CONFIRM: plue.QuestionFields = form("Please confirm", { ok: { type: "boolean" } });

const written = (answer: plue.Answer): string =>
  answer.action === "accept" ? JSON.stringify(answer.content) : answer.action;

/** Makes a tool without arguments. */
function asking(name: string, execute: NonNullable<plue.Tool["execute"]>): plue.Tool {
  return plue.defineTool({ name, description: "Asks the client.", execute });
}

export function askingTools(): readonly plue.Tool[] {
  return [
    asking("test_input_required_result_elicitation", async (_, { ask }) => {
      const answer = await ask("user_name", NAME);
      return `Hello, ${written(answer)}!`;
    }),
    asking("test_input_required_result_request_state", async (_, { ask }) => {
      await ask("confirm", CONFIRM);
      return "state-ok";
    }),
    asking("test_input_required_result_multi_round", async (_, { ask }) => {
      const name = await ask("step1", { ...NAME, message: "Step 1: What is your name?" });
      const color = await ask(
        "step2",
        form("Step 2: What is your favorite color?", { color: { type: "string" } }),
      );
      return `${written(name)} ${written(color)}`;
    }),
    asking(
      "test_input_required_result_tampered_state",
      async (_, { ask }) => written(await ask("confirm", CONFIRM)),
    ),
    asking("test_missing_capability", async (_, { ask }) => written(await ask("user_name", NAME))),
    asking("test_streaming_elicitation", async (_, { ask, progress }) => {
      progress(1, 1);
      return written(await ask("user_name", NAME));
    }),
    plue.defineTool({
      name: "test_elicitation",
      description: "Asks the user.",
      parameters: {
        type: "object",
        properties: { message: { type: "string" } },
        required: ["message"],
      },
      execute: async ({ message }, { ask }) =>
        `User response: ${
          written(
            await ask(
              "user",
              form(message, {
                username: { type: "string", description: "User's response" },
                email: { type: "string", description: "User's email address" },
              }),
            ),
          )
        }`,
    }),
    asking("test_elicitation_sep1034_defaults", async (_, { ask }) => {
      const answer = await ask("user", {
        message: "Please review and update the form fields with defaults",
        schema: {
          type: "object",
          properties: {
            name: { type: "string", default: "John Doe" },
            age: { type: "integer", default: 30 },
            score: { type: "number", default: 95.5 },
            status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
            verified: { type: "boolean", default: true },
          },
        },
      });
      return `Elicitation completed: action=${answer.action}, content=${written(answer)}`;
    }),
    asking("test_elicitation_sep1330_enums", async (_, { ask }) => {
      const options = ["option1", "option2", "option3"];
      const titled = (kind: string) =>
        ["First", "Second", "Third"].map((title, index) => ({
          const: `value${index + 1}`,
          title: `${title} ${kind}`,
        }));
      const answer = await ask("user", {
        message: "Please select options",
        schema: {
          type: "object",
          properties: {
            untitledSingle: { type: "string", enum: options },
            titledSingle: { type: "string", oneOf: titled("Option") },
            legacyEnum: {
              type: "string",
              enum: ["opt1", "opt2", "opt3"],
              enumNames: ["Option One", "Option Two", "Option Three"],
            },
            untitledMulti: { type: "array", items: { type: "string", enum: options } },
            titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
          },
        },
      });
      return `Elicitation completed: action=${answer.action}, content=${written(answer)}`;
    }),
  ];
}
