/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/cohere`.
 *
 * @module
 */

export { COHERE as cohere } from "../providers/openai_chat.ts";
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
