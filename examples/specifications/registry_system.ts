/**
 * "Implement Tool Registry System" (Plue, in Zig): a tool with schemas, a lifecycle, an execution context,
 * metadata and metrics. libplue has its C functions `plue_tool_list()` and `plue_tool_execute()`:
 * see `ffi/examples/host.c`.
 *
 * Prints:
 *
 * ```text
 * count: Counts, and sends each number as metadata
 * initialised
 * metadata {"counted":1}
 * metadata {"counted":2}
 * result {"total":2}
 * failed invalid_arguments
 * aborted aborted
 * calls 3, failed 2
 * disposed
 * ```
 */

import { defineTool, ToolDispatcher, ToolRegistry } from "../../mod.ts";

const count = defineTool({
  name: "count",
  description: "Counts, and sends each number as metadata",
  parameters: {
    type: "object",
    properties: { upTo: { type: "integer", minimum: 1 } },
    required: ["upTo"],
  },
  returns: { type: "object", properties: { total: { type: "integer" } }, required: ["total"] },
  init: () => console.log("initialised"),
  dispose: () => console.log("disposed"),
  execute({ upTo }, context) {
    for (let counted = 1; counted <= upTo; counted++) {
      context.throwIfAborted();
      context.metadata({ counted });
    }
    return { total: upTo };
  },
});

const registry = new ToolRegistry({ tools: [count] });
const dispatcher = new ToolDispatcher(registry);
for (const tool of registry.tools) console.log(`${tool.id}: ${tool.description}`);

const context = {
  sessionId: "session-1",
  messageId: "message-1",
  metadata: (value: unknown) => console.log("metadata", JSON.stringify(value)),
};
const result = await dispatcher.dispatch({ name: "count", arguments: '{"upTo":2}' }, context);
console.log("result", result.ok ? JSON.stringify(result.content) : result.error.message);

const wrong = await dispatcher.dispatch({ name: "count", arguments: { upTo: 0 } });
console.log("failed", wrong.ok ? "" : wrong.error.code);
const signal = AbortSignal.abort();
const aborted = await dispatcher.dispatch({ name: "count", arguments: { upTo: 9 } }, { signal });
console.log("aborted", aborted.ok ? "" : aborted.error.code);

const { calls, failed } = dispatcher.metrics().tools[0] ?? { calls: 0, failed: 0 };
console.log(`calls ${calls}, failed ${failed}`);
await registry.dispose();
