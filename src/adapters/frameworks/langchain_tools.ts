/** Tools for LangChain JS, which is not imported. */

import type { Exportable, LangChainTool, LangChainToolMessage } from "../../formats/mod.ts";
import { LANGCHAIN } from "../../formats/providers/langchain.ts";
import { fail, isFunction } from "../../tool/mod.ts";
import { FIELDS, type FrameworkOptions, runnable } from "./framework_tools.ts";

const KIT = ["tool", "ToolMessage"] as const;

/** The exports of `langchain` and `@langchain/core` with these names. */
export interface LangChainKit {
  readonly tool: (run: never, fields: never) => unknown;
  readonly ToolMessage: new (fields: never) => unknown;
  /** The export of `@langchain/langgraph`, with the option `approvals`. */
  readonly interrupt?: (request: LangChainApprovalRequest) => unknown;
}

/** The request of an approval, in the form of LangChain's `humanInTheLoopMiddleware`. */
export interface LangChainApprovalRequest {
  readonly actionRequests: readonly [
    {
      /** Identifies the tool and the arguments. The decision must repeat it. */
      readonly id: string;
      readonly name: string;
      readonly args: unknown;
      readonly description: string;
    },
  ];
  readonly reviewConfigs: readonly [
    { readonly actionName: string; readonly allowedDecisions: readonly ["approve", "reject"] },
  ];
}

/** The resume value of LangGraph's `Command` for a {@linkcode LangChainApprovalRequest}. */
export interface LangChainDecisions {
  readonly decisions: readonly { readonly id: string; readonly type: "approve" | "reject" }[];
}

/** Interrupts a LangGraph run until a person has decided on exactly this call. */
function decisionOf(
  interrupt: (request: LangChainApprovalRequest) => unknown,
  { name, description }: LangChainTool,
  args: unknown,
  id: string,
): "accept" | "decline" {
  for (;;) {
    // LangGraph returns the answers of a run in the order of its interrupts, even if their calls
    // have changed. It throws at the first interrupt without an answer.
    const answer = interrupt({
      actionRequests: [{ id, name, args, description }],
      reviewConfigs: [{ actionName: name, allowedDecisions: ["approve", "reject"] }],
    });
    const { decisions }: Partial<LangChainDecisions> = Object(answer);
    const own = Array.isArray(decisions)
      ? decisions.find((one) => Object(one).id === id)
      : undefined;
    if (own?.type === "approve") return "accept";
    if (own?.type === "reject") return "decline";
  }
}

type LangChainRun = (
  args: unknown,
  config: { readonly signal?: AbortSignal; readonly toolCall?: { readonly id?: string } },
) => Promise<unknown>;

/**
 * Returns the tools for `createAgent`, `ToolNode` and `bindTools` of LangChain JS. A failed call
 * returns a `ToolMessage` with the status `error`; if the tool was invoked with arguments alone, it
 * throws. LangChain validates arguments before plue, with its own messages. With `approvals`, a call
 * that needs approval interrupts the run of LangGraph with a {@linkcode LangChainApprovalRequest}.
 *
 * @example Usage
 * ```ts ignore
 * import { createAgent, tool, ToolMessage } from "langchain";
 *
 * const tools = toLangChainTools(toolset, { dispatcher, tool, ToolMessage });
 * const agent = createAgent({ model, tools });
 * ```
 *
 * @param options The dispatcher, LangChain's `tool` and `ToolMessage`, and with `approvals`
 * LangGraph's `interrupt`.
 * @throws {TypeError} If an option is invalid, or a tool cannot be exported.
 */
export function toLangChainTools<Kit extends LangChainKit, Context>(
  source: Exportable,
  options: FrameworkOptions<Context> & Kit,
): ReturnType<Kit["tool"]>[] {
  const action = "make tools for LangChain JS";
  const fields = [...FIELDS, ...KIT, "interrupt"];
  const { tools, answer, request } = runnable(LANGCHAIN, source, options, fields);
  const { interrupt } = options;
  if (isFunction(interrupt) !== (request !== undefined)) {
    fail(action, "set both approvals and interrupt, or neither");
  }
  for (const name of KIT) {
    if (!isFunction(options[name])) {
      fail(action, `the option ${name} must be the export of LangChain`);
    }
  }
  // LangChain's types have an overload for each schema library; this is their common form.
  const { tool, ToolMessage } = options as unknown as {
    tool(run: LangChainRun, fields: LangChainTool): ReturnType<Kit["tool"]>;
    readonly ToolMessage: new (fields: LangChainToolMessage) => unknown;
  };
  return tools.map((fields) =>
    tool(async (args, { signal, toolCall }) => {
      const id = toolCall?.id;
      const call = { type: "tool_call", name: fields.name, args, id };
      const approval = id === undefined ? undefined : await request?.(call, "once");
      const action = interrupt === undefined || approval === undefined
        ? undefined
        : decisionOf(interrupt, fields, args, approval);
      const { message } = await answer(call, signal, action);
      if (id !== undefined) return new ToolMessage(message);
      // A failure has a text as its content.
      if (message.status === "error") throw new Error(String(message.content));
      return message.content;
    }, fields)
  );
}
