/** The tools that become tasks in MCP's conformance suite. */

import { defineTool, type QuestionFields, type Tool, ToolResult } from "@plue/tools";

/** Waits for `ms` milliseconds. Rejects if the call is aborted before. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}

const CONFIRM: QuestionFields = {
  message: "Go on?",
  schema: { type: "object", properties: { confirm: { type: "boolean" } }, required: ["confirm"] },
};
const NAME: QuestionFields = {
  message: "What is your name?",
  schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};

export function taskTools(): readonly Tool[] {
  return [
    defineTool({
      name: "about",
      description: "Is the first of the list, which the suite calls without arguments.",
      execute: () => "The tools that MCP's conformance suite calls.",
    }),
    defineTool({
      name: "greet",
      description: "Answers at once.",
      parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      execution: "sync",
      execute: ({ name }) => `Hello, ${name}!`,
    }),
    defineTool({
      name: "slow_compute",
      description: "Takes some seconds, and becomes a task then.",
      parameters: {
        type: "object",
        properties: { seconds: { type: "number" }, label: { type: "string" } },
        required: ["seconds"],
      },
      timeoutMs: 120_000,
      execution: "either",
      async execute({ seconds, label = "" }, { signal }) {
        await pause(seconds * 1_000, signal);
        return `Computed ${label} in ${seconds} seconds.`;
      },
    }),
    defineTool({
      name: "failing_job",
      description: "Is a task that fails.",
      execution: "task",
      async execute(_, { signal }) {
        await pause(1_000, signal);
        return ToolResult.error("threw", "This job intentionally fails");
      },
    }),
    defineTool({
      name: "protocol_error_job",
      description: "Is a task whose result MCP does not have.",
      execution: "task",
      execute: () => ToolResult.blocks([{ type: "nonsense" } as never]),
    }),
    defineTool({
      name: "confirm_delete",
      description: "Is a task that asks.",
      parameters: {
        type: "object",
        properties: { filename: { type: "string" } },
        required: ["filename"],
      },
      execution: "task",
      async execute({ filename }, { ask }) {
        const { action } = await ask("confirm", { ...CONFIRM, message: `Delete ${filename}?` });
        return action === "accept" ? `Deleted ${filename}.` : `Kept ${filename}.`;
      },
    }),
    defineTool({
      name: "multi_input",
      description: "Is a task that asks two questions at once.",
      execution: "task",
      async execute(_, { ask }) {
        const answers = await Promise.all([ask("name", NAME), ask("confirm", CONFIRM)]);
        return answers.map(({ action }) => action).join(" ");
      },
    }),
    defineTool({
      name: "test_tool_with_task",
      description: "Asks first, and becomes a task then.",
      execution: "either",
      async execute(_, { ask, signal }) {
        const answer = await ask("user_name", NAME);
        await pause(1_000, signal);
        return `Hello, ${answer.action === "accept" ? JSON.stringify(answer.content) : "you"}!`;
      },
    }),
  ];
}
