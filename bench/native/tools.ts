/** The measured tools, which do as little work as possible. */

import { defineTool, ToolRegistry } from "../../mod.ts";

/** The registry, as a tools module exports it. */
export const registry: ToolRegistry = new ToolRegistry({
  tools: [
    defineTool({
      name: "echo",
      description: "Returns its parameters.",
      parameters: { type: "object" },
      execute: (params: unknown) => params,
    }),
    defineTool({
      name: "sleep",
      description: "Ends when it is aborted.",
      parameters: { type: "object" },
      execute: (_params: unknown, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        }),
    }),
  ],
});
