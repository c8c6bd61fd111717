/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/ai-sdk`.
 *
 * @module
 */

export { AI_SDK as aiSdk } from "../providers/ai_sdk.ts";
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
