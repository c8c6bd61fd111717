/**
 * Runs of agents that stop at an approval of their framework. A later process resumes a run from the
 * state that the framework has saved as text.
 * `bun approvals.ts <folder> <states>` approves the runs with these states, and prints their outcomes.
 */

import {
  Agent,
  type Model,
  type ModelResponse,
  Runner,
  RunState,
  setTracingDisabled,
  Usage,
} from "@openai/agents-core";
import { generateText, type ModelMessage, stepCountIs } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { AIMessage, createAgent, fakeModel, tool, ToolMessage } from "langchain";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { deserialize, serialize } from "node:v8";
import {
  frameworkApprovals,
  toAiSdkTools,
  toLangChainTools,
  toOpenAiAgentsTools,
} from "../../src/adapters/frameworks/mod.ts";
import { ask, rules } from "../../src/adapters/rules/mod.ts";
import { sqliteCallStore } from "../../src/adapters/sqlite/mod.ts";
import { typeboxEngine } from "../../src/adapters/typebox/mod.ts";
import type { CallStore } from "../../src/execute/durable/mod.ts";
import { ToolDispatcher } from "../../src/execute/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { defineTool } from "../../src/tool/mod.ts";
import { aiAnswers } from "./ai_models.ts";

/** The arguments of the calls that ran in this process. */
export const ran: unknown[] = [];
const fields = {
  parameters: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
  execute: ({ amount }: { amount: number }) => `paid ${ran.push(amount) && amount}`,
} as const;
const toolset = buildToolset([
  defineTool({ ...fields, name: "refund", description: "Refunds.", requiresApproval: true }),
  defineTool({ ...fields, name: "pay", description: "Pays." }),
]);
/** A rule requires approval from an amount of 100. */
const dispatcher = new ToolDispatcher(toolset, {
  engine: typeboxEngine(),
  approve: "ask",
  rules: rules([{
    name: "large",
    decide: (call) => Number(Object(call.arguments)["amount"]) >= 100 ? ask("Large?") : "allow",
  }]),
});

export type Decision = "approve" | "reject";

/** A stopped run, or the results of the calls that the model received. */
export type Stop = { readonly requests: readonly unknown[]; readonly state: string };

export interface ApprovalRun {
  /** Starts a run in which the model calls a tool. */
  start(store: CallStore, name: string, amount: number): Promise<Stop>;
  /** Replaces a text of the same length in the state. */
  edit(state: string, before: string, after: string): string;
  /** Resumes a run, and returns the result of the call for the model. */
  resume(store: CallStore, state: string, decision: Decision): Promise<string>;
}

const aiSdk: ApprovalRun = {
  async start(store, name, amount) {
    const { whole } = aiAnswers([["c1", name, JSON.stringify({ amount })]]);
    const messages: ModelMessage[] = [{ role: "user", content: "?" }];
    const { content, response } = await generateText({
      model: new MockLanguageModelV4({ doGenerate: whole }),
      tools: toAiSdkTools(toolset, { dispatcher, approvals: frameworkApprovals(store) }),
      stopWhen: stepCountIs(2),
      messages,
    });
    const requests = content.filter(({ type }) => type === "tool-approval-request")
      .map((request) => Object(request).toolCall.input);
    return { requests, state: JSON.stringify([...messages, ...response.messages]) };
  },
  edit: (state, before, after) => state.replaceAll(before, after),
  async resume(store, state, decision) {
    const messages: ModelMessage[] = JSON.parse(state);
    const { approvalId } = messages.flatMap(({ content }) => content as { approvalId?: string }[])
      .find((part) => part.approvalId !== undefined) ?? {};
    const approved = decision === "approve";
    const model = new MockLanguageModelV4({ doGenerate: aiAnswers([]).whole.slice(1) });
    await generateText({
      model,
      tools: toAiSdkTools(toolset, { dispatcher, approvals: frameworkApprovals(store) }),
      messages: [...messages, {
        role: "tool",
        content: [{ type: "tool-approval-response", approvalId: `${approvalId}`, approved }],
      }],
    });
    const [last] = (model.doGenerateCalls[0]?.prompt ?? []).slice(-1);
    return JSON.stringify(Object(last?.content[0]).output);
  },
};

setTracingDisabled(true);

function agentOf(store: CallStore, outputs: ModelResponse["output"][]) {
  const inputs: unknown[] = [];
  const model: Model = {
    getResponse: ({ input }) => {
      inputs.push(input);
      return Promise.resolve({ usage: new Usage(), output: outputs.shift() ?? [] });
    },
    getStreamedResponse: () => {
      throw new Error("not streamed");
    },
  };
  const tools = toOpenAiAgentsTools(toolset, { dispatcher, approvals: frameworkApprovals(store) });
  return { agent: new Agent({ name: "a", instructions: "i", model, tools }), inputs };
}

const openAiAgents: ApprovalRun = {
  async start(store, name, amount) {
    const { agent } = agentOf(store, [[{
      type: "function_call",
      callId: "c1",
      name,
      status: "completed",
      arguments: JSON.stringify({ amount }),
    }], [SAID]]);
    const { interruptions, state } = await new Runner().run(agent, "?");
    const requests = interruptions.map(({ rawItem }) => JSON.parse(Object(rawItem).arguments));
    return { requests, state: state.toString() };
  },
  edit: aiSdk.edit,
  async resume(store, state, decision) {
    const { agent, inputs } = agentOf(store, [[SAID]]);
    const resumed = await RunState.fromString(agent, state);
    for (const item of resumed.getInterruptions()) resumed[decision](item);
    await new Runner().run(agent, resumed);
    const results = (inputs[0] as { type: string; output: { text: string } }[])
      .filter(({ type }) => type === "function_call_result");
    return JSON.stringify(results[0]?.output.text);
  },
};

const SAID: ModelResponse["output"][number] = {
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "done" }],
};

/** The copy of LangGraph that `langchain` uses. */
const graph = await import(
  pathToFileURL(createRequire(import.meta.resolve("langchain")).resolve("@langchain/langgraph"))
    .href
);
const config = { configurable: { thread_id: "t1" } };

function graphOf(store: CallStore, model: ReturnType<typeof fakeModel>, state?: string) {
  const checkpointer = new graph.MemorySaver();
  if (state !== undefined) Object.assign(checkpointer, deserialize(Buffer.from(state, "base64")));
  const kit = { tool, ToolMessage, interrupt: graph.interrupt };
  const tools = toLangChainTools(toolset, {
    ...{ dispatcher, approvals: frameworkApprovals(store) },
    ...kit,
  });
  return { checkpointer, agent: createAgent({ model, tools, checkpointer }) };
}

const langChain: ApprovalRun = {
  async start(store, name, amount) {
    const call = { id: "c1", name, args: { amount } };
    const model = fakeModel().respondWithTools([call as never]).respond(new AIMessage("done"));
    const { agent, checkpointer } = graphOf(store, model);
    const result = await agent.invoke({ messages: [{ role: "user", content: "?" }] }, config);
    const interrupts: { value: unknown }[] = Object(result).__interrupt__ ?? [];
    const requests = interrupts.map(({ value }) => Object(value).actionRequests[0].args);
    const { storage, writes } = checkpointer;
    return { requests, state: serialize({ storage, writes }).toString("base64") };
  },
  edit: (state, before, after) =>
    Buffer.from(Buffer.from(state, "base64").toString("latin1").replaceAll(before, after), "latin1")
      .toString("base64"),
  async resume(store, state, decision) {
    const model = fakeModel().respond(new AIMessage("done"));
    const { agent } = graphOf(store, model, state);
    const { tasks }: { tasks: unknown[] } = await agent.getState(config);
    const [{ id }] = Object(tasks[0]).interrupts[0].value.actionRequests;
    const resume = { decisions: [{ id, type: decision }] };
    const { messages } = await agent.invoke(new graph.Command({ resume }), config);
    const answer = (messages as unknown[]).find((message) => ToolMessage.isInstance(message));
    return JSON.stringify(answer?.content);
  },
};

export const RUNS = { aiSdk, openAiAgents, langChain };

if (import.meta.main) {
  const [folder = "", states = ""] = process.argv.slice(2);
  for (const [framework, state] of Object.entries<string>(JSON.parse(states))) {
    using store = await sqliteCallStore(`${folder}/${framework}.db`);
    const run = RUNS[framework as keyof typeof RUNS];
    console.log(framework, await run.resume(store, state, "approve"));
  }
}
