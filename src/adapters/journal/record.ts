/** The records of a journal: what is kept of a call. */

import { definitionText } from "../../execute/durable/mod.ts";
import type { CallDecision, CallNote } from "../../execute/mod.ts";
import {
  attemptOr,
  canonicalJson,
  clip,
  type FailureCode,
  once,
  type Tool,
  type ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import { Redactor, scrub } from "./redact.ts";

/** Returns the SHA-256 of a text in base64url; with a key, its HMAC. */
export type Hash = (text: string | Uint8Array) => string;

/**
 * How much of the arguments a record has. `digest`: only a digest. `redacted`: also the values,
 * without secrets, and the messages of failures. `full`: also the secrets.
 */
export type JournalDetail = "none" | "digest" | "redacted" | "full";

/** A digest of a JSON value without its secrets, and the size of the whole value in characters. */
export interface JournalDigest {
  readonly digest: string;
  readonly size: number;
}

/** The record of one call, written when the call has ended. JSON. */
export interface JournalRecord {
  /** The hash of the record before, in base64url. */
  readonly previous: string;
  /** Only in records that are not of calls. */
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
  /** The decisions besides the selection that let the call pass. */
  readonly decisions?: readonly CallDecision[];
  readonly arguments?: unknown;
  readonly argumentsDigest?: JournalDigest;
  readonly outcome?: "ok" | FailureCode;
  /** Whether the tool of a failed call ran. */
  readonly ran?: ToolRun;
  readonly message?: string;
  readonly questions?: readonly { readonly key: string; readonly message?: string }[];
  /** Absent for a failure. */
  readonly result?: JournalDigest;
  /** True for the result of an earlier call. */
  readonly replayed?: true;
  readonly durationMs?: number;
  /** How often the tool was started: 0 if the call ended before, more than 1 after retries. */
  readonly attempts?: number;
  readonly trace?: string;
  /** In a record `begin`: false if the writer before it did not end, so that records may be lost. */
  readonly clean?: boolean;
  /** In a record `dropped`: the number of calls without a record. */
  readonly count?: number;
  /** The hash of this record without this field. */
  readonly hash: string;
}

/** What is taken from a call at its end. The rest of the work is done later. */
export interface EndedCall {
  readonly facts: Pick<JournalRecord, "time"> & { readonly [name: string]: unknown };
  readonly name: string;
  /** `undefined` for a name that the caller's toolset does not have. */
  readonly tool: Tool | undefined;
  /** The arguments and the content as JSON; `undefined` if they are not recorded, or not JSON. */
  readonly texts: readonly [args: string | undefined, content: string | undefined];
  readonly result: ToolResult;
  readonly attempts: number;
  readonly notes: readonly CallNote[] | undefined;
  readonly traceParent: string | null | undefined;
}

const TRACE = /^[\da-f]{2}-([\da-f]{32})-/;

/** Makes the records of calls, without their places in the chain. */
export class RecordMaker {
  readonly #detail: JournalDetail;
  readonly #secrets: readonly string[];
  readonly #hash: Hash;
  readonly #redactors: WeakMap<Tool, Redactor> = new WeakMap();
  readonly #definitions: WeakMap<Tool, string> = new WeakMap();

  constructor(detail: JournalDetail, secrets: readonly string[], hash: Hash) {
    this.#detail = detail;
    this.#secrets = secrets;
    this.#hash = hash;
  }

  /** The record of a call whose values cannot be read, such as lists in lists that are too deep. */
  outlineOf({ facts, name, result, attempts }: EndedCall): object {
    const outcome = result.ok ? "ok" : result.error.code;
    return { ...facts, tool: clip(name, 257), outcome, attempts };
  }

  recordOf({ facts, name, tool, texts, result, attempts, ...call }: EndedCall): object {
    const redactor = tool === undefined ? new Redactor([]) : this.#redactorOf(tool);
    const found: Set<string> = new Set();
    const [given, content] = texts.map((text) =>
      text === undefined ? undefined : attemptOr(undefined, () => JSON.parse(text))
    );
    const clean = redactor.redact(given, found);
    const digests = [clean, redactor.redact(content, found)].map((value, at) =>
      value === undefined || this.#detail === "none"
        ? undefined
        : { digest: this.#hash(canonicalJson(value)), size: texts[at]?.length }
    );
    const isFull = this.#detail === "full";
    const isShown = isFull || this.#detail === "redacted";
    const shown = (text: string | undefined): string | undefined =>
      text === undefined || !isShown ? undefined : scrub(text, isFull ? new Set() : found);
    const { notes = [], traceParent } = call;
    const decisions = notes.filter((note) => "verdict" in note)
      // The reason of a criterion contains nothing of the call.
      .map((one) => ({ ...one, reason: one.by === "criterion" ? one.reason : shown(one.reason) }));
    const failed = result.ok ? undefined : result;
    return {
      ...facts,
      tool: clip(name, 257),
      definition: tool && once(this.#definitions, tool, () => this.#hash(definitionText(tool))),
      decisions: decisions.length > 0 ? decisions : undefined,
      arguments: isFull ? given : isShown ? clean : undefined,
      argumentsDigest: digests[0],
      outcome: failed?.error.code ?? "ok",
      ran: failed?.error.ran,
      message: shown(failed?.error.message),
      questions: failed?.questions?.map(({ key, message }) => ({
        ...{ key: scrub(key, found), message: shown(message) },
      })),
      result: digests[1],
      replayed: result.replayed,
      durationMs: Math.round(result.durationMs * 1_000) / 1_000,
      attempts,
      trace: notes.find((note) => "traceId" in note)?.traceId ?? TRACE.exec(traceParent ?? "")?.[1],
    };
  }

  #redactorOf(tool: Tool): Redactor {
    return once(this.#redactors, tool, () => {
      const tools: Tool[] = [];
      for (let one: Tool | undefined = tool; one; one = one.view?.tool) tools.push(one);
      const schemas = tools.flatMap(({ parameters, returns }) => [parameters, returns ?? true]);
      return new Redactor(this.#secrets, schemas);
    });
  }
}
