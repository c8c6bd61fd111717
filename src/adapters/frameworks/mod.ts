/**
 * Tools for agent frameworks, and loops for the clients of providers: `@plue/tools/frameworks`.
 *
 * @module
 */

export { type FrameworkApprovals, frameworkApprovals } from "./approvals.ts";
export {
  type AiSdk6ContentPart,
  type AiSdkOptions,
  type FrameworkOptions,
  type RunnableAiSdkTool,
  toAiSdkTools,
} from "./framework_tools.ts";
export {
  type LangChainApprovalRequest,
  type LangChainDecisions,
  type LangChainKit,
  toLangChainTools,
} from "./langchain_tools.ts";
export { type AgentsOutput, type AgentsTool, toOpenAiAgentsTools } from "./openai_agents_tools.ts";
export type { ExistingToolsOptions } from "./existing_tools.ts";
export { fromAiSdkTools } from "./from_ai_sdk.ts";
export { fromLangChainTools } from "./from_langchain.ts";
export {
  runTools,
  type RunToolsOptions,
  streamTools,
  type SuspendedTurn,
  type ToolRun,
  type ToolRunEvent,
} from "./run_tools.ts";
export type {
  ClientRequest,
  ClientTarget,
  EventOf,
  MessageIn,
  ResponseOf,
} from "./client_formats.ts";
