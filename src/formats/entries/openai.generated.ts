/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/openai`.
 *
 * @module
 */

export {
  OPENAI_CHAT as openaiChat,
  OPENAI_CHAT_STRICT as openaiChatStrict,
} from "../providers/openai_chat.ts";
export {
  OPENAI_REALTIME as openaiRealtime,
  OPENAI_RESPONSES as openaiResponses,
  OPENAI_RESPONSES_STRICT as openaiResponsesStrict,
} from "../providers/openai_responses.ts";
export {
  accumulateCalls,
  decodeCalls,
  dispatchCalls,
  dispatchResponse,
  encodeResult,
  encodeResults,
  exportTools,
  resumeTurn,
} from "../records.ts";
