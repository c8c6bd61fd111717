/** The responses of the AI SDK's mock models, which are the same for both versions of the SDK. */

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export type AiCall = readonly [toolCallId: string, toolName: string, input: string];

/** A model that makes these calls and then sends its answer, with and without streaming. */
export function aiAnswers(calls: readonly AiCall[]) {
  const content = calls.map(([toolCallId, toolName, input]) => {
    return { type: "tool-call" as const, toolCallId, toolName, input };
  });
  const finish = { unified: "tool-calls" as const, raw: "tool_calls" };
  const stopped = { unified: "stop" as const, raw: "stop" };
  const text = { type: "text" as const, text: "3" };
  const asking = [...content, { type: "finish" as const, finishReason: finish, usage }];
  const answering = [
    { type: "text-start" as const, id: "t" },
    { type: "text-delta" as const, id: "t", delta: "3" },
    { type: "text-end" as const, id: "t" },
    { type: "finish" as const, finishReason: stopped, usage },
  ];
  return {
    whole: [
      { content, finishReason: finish, usage, warnings: [] },
      { content: [text], finishReason: stopped, usage, warnings: [] },
    ],
    streamed: [asking, answering] as ((typeof asking)[number] | (typeof answering)[number])[][],
  };
}
