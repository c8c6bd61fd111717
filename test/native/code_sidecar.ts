/** A sidecar whose host runs programs that call its tools. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { defineTool, type ToolDispatcherOptions, ToolRegistry, type Toolset } from "../../mod.ts";
import { memoryCallStore, sealedTickets } from "../../src/adapters/calls/mod.ts";
import { codeTool, quickJs } from "../../src/adapters/code/mod.ts";
import { runSidecar } from "../../src/adapters/native/run_sidecar.ts";

const wasm = createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm");
const options = { executor: quickJs(readFileSync(wasm)) };

const registry: ToolRegistry = new ToolRegistry({
  tools: [
    defineTool({ name: "list", description: "Lists.", execute: () => ["a", "b"] }),
    defineTool({
      name: "pay",
      description: "Pays.",
      requiresApproval: true,
      parameters: { type: "object", properties: { id: { type: "string" } } },
      execute: ({ id }) => `paid ${id}`,
    }),
  ],
});

const bridge = (toolset: Toolset): Toolset => codeTool(toolset, options);

const dispatch: ToolDispatcherOptions = {
  approve: "ask",
  tickets: sealedTickets({ keys: [new Uint8Array(32).fill(7)], store: memoryCallStore() }),
};

runSidecar({ tools: { registry, bridge, dispatch } });
