/**
 * What a call asks before it goes on, and what it is answered. The words are those of MCP.
 *
 * @module
 */

import type { JsonSchema } from "./json.ts";
import type { Issue } from "./result.ts";

/**
 * What kind of answer is wanted: content that fits a schema, yes or no, or a visit to a URL, after
 * which the tool finds a credential where it looks for it.
 */
export type QuestionKind = "input" | "approval" | "authorization";

/** What a tool asks. */
export interface QuestionFields {
  /** @default {"input"} */
  readonly kind?: QuestionKind | undefined;
  /** The question, for the person who answers. Up to 2,000 characters. */
  readonly message: string;
  /** What the content of the answer must fit, for the kind `input`. Absent: any JSON, or none. */
  readonly schema?: JsonSchema | undefined;
  /** Where to go, for the kind `authorization`. */
  readonly url?: string | undefined;
}

/** A question, as the one who answers gets it. JSON. */
export interface Question extends QuestionFields {
  /** Names it among the questions of its call. The answer comes under this key. */
  readonly key: string;
  readonly kind: QuestionKind;
  /** The arguments of the call, for the kind `approval`. */
  readonly arguments?: unknown;
  /** What was wrong with the last answer, if the question is asked again. */
  readonly issues?: readonly Issue[];
}

/** What the person did: answered, said no, or went away without an answer. */
export type Answer<Content = unknown> =
  | { readonly action: "accept"; readonly content?: Content }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** Answers, by the keys of their questions. */
export interface Answers {
  readonly [key: string]: Answer;
}
