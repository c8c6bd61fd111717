/**
 * How the questions of one call reach its client. Since revision 2026-07-28 the result of the call
 * has them, and the client calls again with the answers. Before, they are requests on the stream of
 * the call, where one process serves the session.
 *
 * @module
 */

import {
  type ClientCapabilities,
  type InputRequest,
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/server";
import {
  type Answer,
  type Answers,
  type Question,
  type SuspendedCall,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";
import {
  answerOf,
  capabilitiesFor,
  hasOneField,
  missingOf,
  requestOf,
  UnaskableError,
} from "./questions.ts";

/** What a request says of the questions that its client can be asked, and of its answers. */
export interface ClientInput {
  /** What the client has declared. */
  readonly declared: ClientCapabilities;
  /**
   * Asks on the stream of the request, as before revision 2026-07-28. Resolves to the client's
   * result; to `undefined` if it has none.
   */
  readonly ask?: ((request: InputRequest, signal: AbortSignal) => Promise<unknown>) | undefined;
  /** The client's answers, by key. */
  readonly responses?: Readonly<Record<string, unknown>> | undefined;
  /** What the call that was suspended gave the client. */
  readonly state?: string | undefined;
}

/** A ticket with the answers to its questions. */
export interface Continuation {
  readonly ticket: string;
  readonly answers: Answers;
}

/** Between the keys of the questions and the ticket. Neither has this character. */
const END_OF_KEYS = "|";
/** After the key of a question whose form has one field. No key has this character. */
const FIELD_MARK = "*";

/** The questions of one call. */
export class CallQuestions {
  readonly #input: ClientInput;
  /** Whether questions can be in the result of the call. */
  readonly #isModern: boolean;
  /** What the client cannot be asked, and what it would have to declare. */
  #unasked: readonly Question[] = NONE;
  #missing: ClientCapabilities | undefined;
  /** Why no client could be asked the last of the questions that MCP has no form for. */
  #unaskable: UnaskableError | undefined;

  constructor(input: ClientInput, isModern: boolean) {
    this.#input = input;
    this.#isModern = isModern;
  }

  /**
   * The call that the client continues, if it does. The keys that were asked are beside the ticket:
   * answers to others are ignored, as the protocol wants, where the dispatcher would refuse them. A
   * client that changes them gains nothing, because the ticket has them too.
   */
  continuation(): Continuation | undefined {
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
   * Answers a question now, if that can be.
   *
   * @returns `undefined` if the result of the call asks, and `null` if the client cannot be asked.
   * @throws {UnaskableError} If MCP has no form for the question.
   */
  async answer(question: Question, signal: AbortSignal): Promise<Answer | undefined | null> {
    const { declared, ask, responses, state } = this.#input;
    const request = this.#requestOf(question);
    const missing = missingOf(capabilitiesFor(request), declared);
    if (missing !== undefined) this.#missing = { ...this.#missing, ...missing };
    else if (this.#isModern) {
      // A client may know the answer before it is asked. An approval is of arguments that were shown.
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

  #requestOf(question: Question): InputRequest {
    try {
      return requestOf(question);
    } catch (error) {
      if (error instanceof UnaskableError) this.#unaskable = error;
      throw error;
    }
  }

  /** The result of a suspended call: its questions, and what the client sends back with the answers. */
  inputRequired({ questions, ticket }: SuspendedCall): InputRequiredResult {
    const keys = questions.map((each) => hasOneField(each) ? `${each.key}${FIELD_MARK}` : each.key);
    return {
      resultType: "input_required",
      inputRequests: Object.fromEntries(questions.map((each) => [each.key, requestOf(each)])),
      requestState: `${keys.join(",")}${END_OF_KEYS}${ticket}`,
    };
  }

  /**
   * What to say of a call that cannot do without an answer that the client cannot give.
   *
   * @throws {ProtocolError} If the protocol has an error for it.
   */
  unanswered(failure: ToolFailure): ToolFailure {
    const { error: { code }, durationMs } = failure;
    if (this.#unaskable !== undefined) {
      return ToolResult.error(code, this.#unaskable.message, { durationMs });
    }
    if (this.#unasked.length === 0) return failure;
    if (this.#isModern) {
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: this.#missing ?? {} });
    }
    const visits = this.#unasked.filter(({ url }) => url !== undefined);
    const canVisit = missingOf({ elicitation: { url: {} } }, this.#input.declared) === undefined;
    if (canVisit && visits.length === this.#unasked.length) {
      throw new UrlElicitationRequiredError(
        visits.map(({ message, url = "" }) => ({
          mode: "url",
          message,
          url,
          elicitationId: crypto.randomUUID(),
        })),
      );
    }
    const asked = this.#unasked.map(({ message, url }) =>
      JSON.stringify(message) + (url === undefined ? "" : ` (visit ${url}, then call again)`)
    );
    const why = `The call needs an answer to ${asked.join(" and ")}, and this client cannot be ` +
      'asked here: use one that negotiates MCP 2026-07-28 (versionNegotiation: { mode: "auto" } of ' +
      "the official client), or one that offers elicitation to a server that keeps its session";
    return ToolResult.error(code, why, { durationMs });
  }
}

const NONE: readonly Question[] = [];
