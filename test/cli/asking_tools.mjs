// Tools that ask, for the tests of the command.

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
];
