/**
 * A journal: one record for each call, with its caller, decisions and outcome. It can be verified.
 *
 * @module
 */

export type { JournalHead, JournalVerdict, VerifyOptions } from "./chain.ts";
export { verifyJournal } from "./chain.ts";
export type { Journal, JournalOptions, JournalSink, JournalStats } from "./journal.ts";
export { journal } from "./journal.ts";
export type { JournalDetail, JournalDigest, JournalRecord } from "./record.ts";
