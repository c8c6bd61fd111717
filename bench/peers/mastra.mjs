// A tool of Mastra for the benchmark of dispatches.

import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const ISSUE = {
  input: z.object({
    owner: z.string(),
    repo: z.string(),
    title: z.string(),
    body: z.string().optional(),
    assignees: z.array(z.string()).optional(),
    labels: z.array(z.string()).optional(),
    milestone: z.number().optional(),
  }),
  output: z.object({ number: z.int(), url: z.string(), title: z.string().optional() }),
};
const ECHO = { input: z.object({ text: z.string() }), output: z.string() };

/** Runs the tool of a sample with Mastra, which checks arguments and results. */
export function mastraTool(sample) {
  const { input, output } = "text" in sample.parameters.properties ? ECHO : ISSUE;
  const tool = createTool({
    id: "tool",
    description: "A tool to measure.",
    inputSchema: input,
    outputSchema: output,
    execute: async (params) => await sample.execute(params),
  });
  return (params, abortSignal) => tool.execute(params, { abortSignal });
}
