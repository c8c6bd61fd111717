/** Functions that take the record of a target: a bundle has only the imported targets. */

export { accumulateCallsOf as accumulateCalls } from "./stream.ts";
export { allTools, exportToolsTo as exportTools } from "./export.ts";
export { decodeCallsOf as decodeCalls } from "./decode.ts";
export { encodeResultFor as encodeResult, encodeResultsFor as encodeResults } from "./encode.ts";
export {
  dispatchCallsOf as dispatchCalls,
  dispatchResponseOf as dispatchResponse,
  resumeTurnOf as resumeTurn,
} from "./dispatch_response.ts";
