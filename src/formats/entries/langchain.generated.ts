/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/langchain`.
 *
 * @module
 */

export { LANGCHAIN as langchain } from "../providers/langchain.ts";
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
