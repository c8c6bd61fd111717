/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/ollama`.
 *
 * @module
 */

export { OLLAMA as ollama } from "../providers/openai_chat.ts";
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
