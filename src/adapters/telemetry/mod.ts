/**
 * Calls in OpenTelemetry.
 *
 * @module
 */

export { openTelemetry, type OpenTelemetryApi, type OpenTelemetrySpan } from "./open_telemetry.ts";
export type {
  CallSpan,
  CallTelemetry,
  CallTrace,
  ObservedCall,
  TraceHeaders,
  TraceParent,
} from "../../execute/mod.ts";
