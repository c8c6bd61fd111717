/**
 * A journal: one record for each call, with its caller, decisions and outcome. It can be verified.
 *
 * @module
 */

export type { JournalHead, JournalVerdict, VerifyOptions } from "./chain.ts";
export { verifyJournal } from "./chain.ts";
export type { Journal, JournalOptions, JournalStats } from "./journal.ts";
export { journal } from "./journal.ts";
export { jsonLines, type JsonLinesOptions } from "./json_lines.ts";
export type { JournalDetail, JournalDigest, JournalRecord } from "./record.ts";
export { type JournalSink, readJournal, type ReadJournalOptions } from "./sink.ts";
export { type OpenTelemetryLogger, otelSink } from "./otel_sink.ts";
export { storeSink, type StoreSinkOptions } from "./store_sink.ts";
