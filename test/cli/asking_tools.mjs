// Tools that ask questions, for the tests of the command.

export const tools = [
  {
    name: "book",
    description: "Books a table, and asks for what is missing.",
    risk: "safe",
    async execute(_params, context) {
      const answer = await context.ask("table", {
        message: "Which table?",
        schema: {
          type: "object",
          properties: {
            seats: { type: "integer", minimum: 1, description: "How many people" },
            place: { enum: ["inside", "outside"], description: "Where" },
            quiet: { type: "boolean", description: "Away from the music" },
          },
          required: ["seats", "place"],
        },
      });
      return answer;
    },
  },
  {
    name: "tidy",
    description: "Asks two things at once.",
    risk: "safe",
    async execute(_params, { ask }) {
      const approval = (message) => ask(message, { kind: "approval", message });
      const answers = await Promise.all([approval("list"), approval("erase")]);
      return answers.map(({ action }) => action);
    },
  },
  {
    name: "rm",
    description: "Removes a file, and wants approval.",
    risk: "high",
    requiresApproval: true,
    parameters: {
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"],
      additionalProperties: true,
    },
    execute: () => "removed",
  },
];
