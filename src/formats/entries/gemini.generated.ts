/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/gemini`.
 *
 * @module
 */

export { GEMINI as gemini, GEMINI_TYPED as geminiTyped } from "../providers/gemini.ts";
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
