/** A sidecar with its tools inside, to be compiled into one program. */

import { defineTool, ToolRegistry } from "../../../mod.ts";
import { runSidecar } from "../../../src/adapters/native/mod.ts";

const echo = defineTool({
  name: "echo",
  description: "Returns its parameters.",
  parameters: { type: "object" },
  execute: (params: unknown) => params,
});

runSidecar({ tools: { registry: new ToolRegistry({ tools: [echo] }) } });
