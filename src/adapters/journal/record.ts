/** The records of a journal: the recorded fields of a call. */

import { definitionText } from "../../execute/durable/mod.ts";
import type { CallDecision, CallNote } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import { Redactor, scrub } from "./redact.ts";

/** Returns the SHA-256 of a text in base64url; with a key, its HMAC. */
export type Hash = (text: string | Uint8Array) => string;

/**
 * The part of the arguments that a record has. `digest`: only a digest. `redacted`: also the
 * values, without secrets, and the messages of failures. `full`: also the secrets.
 */
export type JournalDetail = "none" | "digest" | "redacted" | "full";

/** The digest of a JSON value without its secrets, and its size in characters. */
export interface JournalDigest {
  readonly digest: string;
  readonly size: number;
}

/** The record of one call, written when the call has ended. JSON. */
export interface JournalRecord {
  /** The hash of the previous record, in base64url. */
  readonly previous: string;
  /** Only in records that do not describe calls. */
  readonly kind?: "begin" | "end" | "dropped";
  /** Counts the records from 1. */
  readonly sequence: number;
  /** The end of the call, in milliseconds since 1970. */
  readonly time: number;
  readonly callId?: string;
  readonly principal?: string;
  readonly session?: string;
  /** The tool's id; the name in the call if the caller has no such tool. */
  readonly tool?: string;
  /** The digest of the tool's description and schemas. */
  readonly definition?: string;
  /** The decisions that admitted the call, in addition to the selection of its tool. */
  readonly decisions?: readonly CallDecision[];
  readonly arguments?: unknown;
  readonly argumentsDigest?: JournalDigest;
  readonly outcome?: "ok" | check.FailureCode;
  /** States whether the tool of a failed call ran. */
  readonly ran?: check.ToolRun;
  readonly message?: string;
  readonly questions?: readonly { readonly key: string; readonly message?: string }[];
  /** Absent for a failure. */
  readonly result?: JournalDigest;
  /** True for the result of an earlier call. */
  readonly replayed?: true;
  readonly durationMs?: number;
  /** The number of starts of the tool: 0 if the call ended before, more than 1 after retries. */
  readonly attempts?: number;
  readonly trace?: string;
  /** In a record `dropped`: the number of calls without a record. */
  readonly count?: number;
  /** The hash of this record without this field. */
  readonly hash: string;
}

/** The copied data of an ended call, from which the record is made later. */
export interface EndedCall {
  /** The fields that need no work. They are the record if the values cannot be read. */
  readonly outline: object;
  /** `undefined` for a name that the caller's toolset does not have. */
  readonly tool: Tool | undefined;
  /** Copies of JSON; `undefined` if they are not recorded, or not JSON. */
  readonly args: unknown;
  readonly content: unknown;
  readonly failure: check.ToolFailure | undefined;
  readonly notes: readonly CallNote[] | undefined;
  readonly traceParent: string | null | undefined;
  readonly weight: number;
}

const TRACE = /^[\da-f]{2}-([\da-f]{32})-/;

/**
 * Returns a function that makes the record of a call, without the fields `previous`, `sequence` and
 * `hash`, which depend on the other records.
 */
export function recordMaker(
  { arguments: detail, secrets }: {
    readonly arguments: JournalDetail;
    readonly secrets: readonly string[];
  },
  hash: Hash,
): (call: EndedCall) => object {
  const isFull = detail === "full";
  const isShown = isFull || detail === "redacted";
  const unknown = { redactor: new Redactor(undefined), definition: undefined };
  const known: WeakMap<Tool, { redactor: Redactor; definition: string }> = new WeakMap();
  const digest = (value: unknown): JournalDigest | undefined => {
    if (value === undefined) return undefined;
    const text = check.canonicalJson(value);
    return { digest: hash(text), size: text.length };
  };
  return ({ outline, tool, args, content, failure, notes = [], traceParent }) => {
    const { redactor, definition } = tool === undefined ? unknown : check.once(known, tool, () => ({
      redactor: new Redactor(tool, secrets),
      definition: hash(definitionText(tool)),
    }));
    const found: Set<string> = new Set();
    const cleanArgs = redactor.redact(args, found);
    const cleanContent = redactor.redact(content, found);
    const shown = (text: string | undefined): string | undefined => {
      if (isFull || text === undefined) return text;
      return isShown && !tool?.callsTools ? scrub(text, found) : undefined;
    };
    const decisions = notes.filter((note) => "verdict" in note)
      // The reason of a criterion contains no data of the call.
      .map((one) => one.by === "criterion" ? one : { ...one, reason: shown(one.reason) });
    return {
      ...outline,
      definition,
      decisions: decisions.length > 0 ? decisions : undefined,
      arguments: isFull ? args : isShown ? cleanArgs : undefined,
      argumentsDigest: digest(cleanArgs),
      message: shown(failure?.error.message),
      questions: failure?.questions?.map(({ key, message }) => ({
        key: scrub(key, found),
        message: shown(message),
      })),
      result: digest(cleanContent),
      trace: notes.find((note) => "traceId" in note)?.traceId ?? TRACE.exec(traceParent ?? "")?.[1],
    };
  };
}
