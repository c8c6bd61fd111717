/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/vertex`.
 *
 * @module
 */

export { VERTEX as vertex } from "../providers/gemini.ts";
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
