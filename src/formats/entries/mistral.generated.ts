/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/mistral`.
 *
 * @module
 */

export { MISTRAL as mistral } from "../providers/openai_chat.ts";
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
