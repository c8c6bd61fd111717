/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/openapi`.
 *
 * @module
 */

export { OPENAPI_3_1 as openapi31 } from "../providers/openapi.ts";
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
