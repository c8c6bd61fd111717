/**
 * Tools for agent frameworks, and loops for the clients of providers: `@plue/tools/frameworks`.
 *
 * @module
 */

export {
  type AgentsOutput,
  type AgentsTool,
  type AiSdk6ContentPart,
  type AiSdkOptions,
  type FrameworkOptions,
  type LangChainKit,
  type RunnableAiSdkTool,
  toAiSdkTools,
  toLangChainTools,
  toOpenAiAgentsTools,
} from "./framework_tools.ts";
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
