/**
 * The trace that a call belongs to.
 *
 * @module
 */

const TRACE_FIELDS = ["traceparent", "tracestate", "baggage"] as const;

/**
 * The headers of a call. MCP carries the trace that a request belongs to in its `_meta`, which wins
 * over the headers: a proxy may have put its own there.
 */
export function tracedHeaders(
  headers: Headers,
  meta: { readonly [key: string]: unknown } | undefined,
): Headers {
  const given = TRACE_FIELDS.filter((field) => typeof meta?.[field] === "string");
  if (given.length === 0) return headers;
  const traced = new Headers(headers);
  for (const field of given) {
    try {
      traced.set(field, String(meta?.[field]));
    } catch {
      // It is not what a header can hold, and so no trace.
    }
  }
  return traced;
}
