/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/anthropic`.
 *
 * @module
 */

export {
  ANTHROPIC as anthropic,
  ANTHROPIC_STRICT as anthropicStrict,
} from "../providers/anthropic.ts";
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
