/**
 * Questions of tools as MCP's elicitation requests, and the answers of clients. Since revision
 * 2026-07-28, the result of the call contains the questions, and the client repeats the call with
 * the answers. In earlier revisions, questions are requests on the stream of the call.
 */

import * as mcp from "@modelcontextprotocol/server";
import type { ClientCapabilities, InputRequest } from "@modelcontextprotocol/server";
import {
  type Answer,
  type Answers,
  argumentsText,
  clip,
  isObject,
  type JsonValue,
  type Question,
  type SuspendedCall,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";

/** Converts a question to an elicitation request, or returns an error if MCP cannot express it. */
export function requestOf(question: Question): InputRequest | TypeError {
  const { key, kind, url, schema } = question;
  const cannot = (why: string): TypeError =>
    new TypeError(`Cannot ask ${JSON.stringify(key)}: ${why}`);
  const message = messageOf(question);
  if (message === undefined) return cannot("the call's arguments are too long to be shown");
  if (kind === "authorization") {
    return url === undefined
      ? cannot("it has no URL")
      : mcp.inputRequired.elicitUrl({ message, url });
  }
  const requestedSchema = hasOneField(question)
    ? { type: "object", properties: { [FIELD]: schema }, required: [FIELD] }
    : { ...(isObject(schema) ? schema : EMPTY_FORM) };
  const params = { message, requestedSchema };
  const { issues: [issue] = [] } = mcp.specTypeSchemas.ElicitRequestFormParams["~standard"]
    .validate(params);
  return issue === undefined ? { method: "elicitation/create", params } as InputRequest : cannot(
    "MCP supports forms of strings, numbers, booleans and choices only " +
      `(${issue.path?.join("/")}: ${clip(issue.message, MAX_WORDS)})`,
  );
}

/** True if the answer is not an object. MCP's forms are objects, so the form has a single field. */
export function hasOneField({ kind, schema }: Question): boolean {
  return (kind === "input" || kind === "client") && isObject(schema) && schema["type"] !== "object";
}

const FIELD = "answer";
const MAX_WORDS = 200;
const EMPTY_FORM = { type: "object", properties: {} };
/** The maximum length of the arguments in an approval question, in characters. */
const MAX_ARGUMENTS = 20_000;

/** Writes the message of a question; `undefined` if the call's arguments are too long. */
function messageOf({ kind, message, arguments: args, issues = [] }: Question): string | undefined {
  const shown = (kind === "approval" || kind === "client") && args !== undefined
    ? argumentsText(args, MAX_ARGUMENTS, 2)
    : "";
  if (shown === undefined) return undefined;
  const about = shown && `\n\n${shown}`;
  const wrong = issues.length === 0
    ? ""
    : `\n\nThe last answer was not valid: ${
      issues.map(({ path, message }) => `${path}: ${message}`).join("; ")
    }`;
  return `${message}${about}${wrong}`;
}

/**
 * Converts a client's response to an answer; `undefined` for an invalid response.
 *
 * @param isField True if the form has a single field, see {@linkcode hasOneField}.
 */
export function answerOf(response: unknown, isField: boolean): Answer | undefined {
  if (!isObject(response)) return undefined;
  const { action, content } = response;
  if (action === "decline" || action === "cancel") return { action };
  if (action !== "accept") return undefined;
  const value = isField && isObject(content) ? content[FIELD] : content;
  return value === undefined ? { action } : { action, content: value as JsonValue };
}

/** A form, or an address to visit. */
export type ElicitationMode = "form" | "url";

function modeOf({ params }: InputRequest): ElicitationMode {
  return params !== undefined && "mode" in params && params.mode === "url" ? "url" : "form";
}

export function supportsMode({ elicitation }: ClientCapabilities, mode: ElicitationMode): boolean {
  if (!isObject(elicitation)) return false;
  // A client that declares no mode supports forms, because earlier revisions had no modes.
  return elicitation[mode] !== undefined || mode === "form" && elicitation["url"] === undefined;
}

export function canReceive(declared: ClientCapabilities, request: InputRequest): boolean {
  return supportsMode(declared, modeOf(request));
}

/** Returns the capabilities that a request of revision 2026-07-28 declares. */
export function declaredBy(
  meta: { readonly [key: string]: unknown } | undefined,
): ClientCapabilities {
  const declared = meta?.[mcp.CLIENT_CAPABILITIES_META_KEY];
  return isObject(declared) ? declared : {};
}

/** The capabilities of a client, and the answers in its request. */
export interface ClientInput {
  readonly declared: ClientCapabilities;
  /**
   * Sends a question on the stream of the request, for revisions before 2026-07-28. Resolves to the
   * client's result, if it has one.
   */
  readonly ask?: ((request: InputRequest, signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly responses?: Readonly<Record<string, unknown>> | undefined;
  readonly state?: string | undefined;
}

/** Separates the keys of the questions from the ticket in `requestState`. */
const END_OF_KEYS = "|";
/** Marks the key of a question whose form has a single field. */
const FIELD_MARK = "*";

export class CallQuestions {
  readonly #input: ClientInput;
  /** True if the result of the call can carry questions. */
  readonly #isModern: boolean;
  /** The questions that the client cannot receive, and their modes. */
  #unasked: readonly Question[] = [];
  #missing: { [Mode in ElicitationMode]?: Record<string, never> } = {};
  /** The reason why MCP cannot express the last such question. */
  #unaskable: TypeError | undefined;

  constructor(input: ClientInput, isModern: boolean) {
    this.#input = input;
    this.#isModern = isModern;
  }

  /**
   * Returns the suspended call that the request continues, if any. Answers to questions that were
   * not asked are dropped, as MCP requires: the dispatcher would reject them. The keys here are
   * only for that: the ticket is authenticated, and contains the keys too.
   */
  continuation(): { readonly ticket: string; readonly answers: Answers } | undefined {
    const { state, responses = {} } = this.#input;
    if (state === undefined) return undefined;
    const end = state.indexOf(END_OF_KEYS);
    const answers: [string, Answer][] = [];
    for (const name of state.slice(0, Math.max(end, 0)).split(",")) {
      const isField = name.endsWith(FIELD_MARK);
      const key = isField ? name.slice(0, -FIELD_MARK.length) : name;
      const answer = Object.hasOwn(responses, key) ? answerOf(responses[key], isField) : undefined;
      if (answer !== undefined) answers.push([key, answer]);
    }
    return { ticket: state.slice(end + 1), answers: Object.fromEntries(answers) };
  }

  /**
   * Answers a question during the call. Returns `undefined` if the result of the call will contain the
   * question; `null` if the client cannot receive it.
   */
  async answer(question: Question, signal: AbortSignal): Promise<Answer | undefined | null> {
    const { declared, ask, responses, state } = this.#input;
    const request = requestOf(question);
    if (request instanceof TypeError) {
      this.#unaskable = request;
      throw request;
    }
    if (!canReceive(declared, request)) this.#missing[modeOf(request)] = {};
    else if (this.#isModern) {
      // A client may answer in advance, but it may approve only arguments that it has seen.
      const isEarly = state === undefined && question.kind === "input" &&
        question.issues === undefined && responses !== undefined &&
        Object.hasOwn(responses, question.key);
      return isEarly ? answerOf(responses[question.key], hasOneField(question)) : undefined;
    } else {
      const answer = answerOf(await ask?.(request, signal), hasOneField(question));
      if (answer !== undefined) return answer;
    }
    this.#unasked = [...this.#unasked, question];
    return null;
  }

  inputRequired({ questions, ticket }: SuspendedCall): mcp.InputRequiredResult {
    const keys = questions.map((each) => hasOneField(each) ? `${each.key}${FIELD_MARK}` : each.key);
    return {
      resultType: "input_required",
      // MCP can express all questions here: `answer` has rejected the other questions.
      inputRequests: Object.fromEntries(
        questions.map((each) => [each.key, requestOf(each) as InputRequest]),
      ),
      requestState: `${keys.join(",")}${END_OF_KEYS}${ticket}`,
    };
  }

  /** Replaces the failure of a call whose questions the client cannot receive, or throws MCP's error. */
  unanswered(failure: ToolFailure): ToolFailure {
    const { error: { code }, durationMs } = failure;
    if (this.#unaskable !== undefined) {
      return ToolResult.error(code, this.#unaskable.message, { durationMs });
    }
    if (this.#unasked.length === 0) return failure;
    if (this.#isModern) {
      throw new mcp.MissingRequiredClientCapabilityError({
        requiredCapabilities: { elicitation: this.#missing },
      });
    }
    const visits = this.#unasked.filter(({ url }) => url !== undefined);
    const canVisit = supportsMode(this.#input.declared, "url");
    if (canVisit && visits.length === this.#unasked.length) {
      throw new mcp.UrlElicitationRequiredError(
        visits.map(({ message, url = "" }) => ({
          mode: "url",
          message,
          url,
          elicitationId: crypto.randomUUID(),
        })),
      );
    }
    const texts = this.#unasked.map(({ message, url }) =>
      JSON.stringify(message) + (url === undefined ? "" : ` (visit ${url}, then call again)`)
    );
    const why = `The call needs an answer to ${texts.join(" and ")}, and this client cannot be ` +
      'asked here: use a client that negotiates MCP 2026-07-28 (versionNegotiation: { mode: "auto" } ' +
      "in the official client), or a client that has a session and declares elicitation";
    return ToolResult.error(code, why, { durationMs });
  }
}
