// Tools for the tests of the command, as data from a module that does not import plue.

export const search = {
  name: "search",
  description: "Finds notes that have all words of a query.",
  risk: "low",
  category: "search",
  tags: ["read-only"],
  parameters: {
    type: "object",
    properties: {
      query: { type: "string", description: "What to look for" },
      opts: {
        type: "object",
        description: "How to look",
        properties: {
          depth: { type: "integer", minimum: 1, description: "How deep to look" },
          order: { enum: ["asc", "desc"], description: "Which comes first" },
        },
      },
      tags: { type: "array", items: { type: "string" }, description: "Tags that notes must have" },
      deep: { type: "boolean", description: "Whether to look into archives" },
      maxResults: { type: "integer", description: "How many notes to give" },
      filter: {
        type: "object",
        additionalProperties: { type: "number" },
        description: "Numbers by name",
      },
    },
    required: ["query"],
    additionalProperties: false,
  },
  execute: (params) => params,
};

export const tools = [
  {
    name: "count",
    description: "Counts to a number, and says each on the way.",
    risk: "safe",
    parameters: {
      type: "object",
      properties: { to: { type: "integer", description: "The last number" } },
      required: ["to"],
    },
    async *execute({ to }, context) {
      for (let number = 1; number <= to; number++) {
        context.progress(number, to, `number ${number}`);
        yield `line ${number}`;
      }
      context.metadata({ counted: to });
      return "done";
    },
  },
  {
    name: "launch",
    description: "Launches the rocket that is on the pad.",
    risk: "high",
    roles: ["control"],
    requiresApproval: true,
    execute: () => "launched",
  },
  {
    name: "wait",
    description: "Waits until the call is aborted.",
    risk: "safe",
    async execute(_params, context) {
      context.throwIfAborted();
      const aborted = new Promise((_resolve, reject) => {
        const timer = setInterval(() => {}, 1_000);
        context.signal.addEventListener("abort", () => {
          clearInterval(timer);
          reject(context.signal.reason);
        });
      });
      context.progress(0, 1, "waiting");
      await aborted;
    },
  },
  {
    name: "fail",
    description: "Fails with an error of its own.",
    risk: "safe",
    execute() {
      throw new Error("The disk is full");
    },
  },
];
