/**
 * The records of targets, and the functions that take them: `@plue/tools/formats/mcp`.
 *
 * @module
 */

export {
  MCP_2025_06_18 as mcp20250618,
  MCP_2025_11_25 as mcp20251125,
  MCP_2026_07_28 as mcp20260728,
} from "../providers/mcp.ts";
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
