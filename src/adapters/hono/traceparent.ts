/**
 * The `traceparent` header (W3C Trace Context): which trace a request belongs to.
 *
 * @module
 */

/** A place in a trace. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether whoever began the trace records it. */
  readonly sampled: boolean;
}

/** Version 00; a later one may have more behind it, after a "-". */
const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/** Reads the header; `undefined` if it is not one, as the specification wants it ignored then. */
export function readTraceParent(
  header: string | null,
): TraceParent | undefined {
  if (header === null || header.length > 512) return undefined;
  const [, version, traceId, spanId, flags = "", rest] = HEADER.exec(header.trim()) ?? [];
  if (traceId === undefined || spanId === undefined || version === "ff") {
    return undefined;
  }
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  if (version === "00" && rest !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Writes the header. */
export function writeTraceParent(
  { traceId, spanId, sampled }: TraceParent,
): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** A new place: in the trace of `parent`, or, without one, in a trace that nobody records. */
export function nextTraceParent(parent: TraceParent | undefined): TraceParent {
  return {
    traceId: parent?.traceId ?? randomHex(16),
    spanId: randomHex(8),
    sampled: parent?.sampled ?? false,
  };
}

function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  // All zeros mean "none"; that they come up is as likely as never.
  return [...values].map((value) => value.toString(16).padStart(2, "0")).join(
    "",
  );
}
