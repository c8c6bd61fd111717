/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/bedrock`.
 *
 * @module
 */

export { BEDROCK as bedrock, BEDROCK_STRICT as bedrockStrict } from "../providers/bedrock.ts";
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
