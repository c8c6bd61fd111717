/** A whole turn: decodes a response's calls, runs them, and writes the messages to send back. */

import {
  type Answers,
  clip,
  fail,
  groupBy,
  isObject,
  isSuspended,
  type Question,
  rejectUnknownFields,
  type ToolCallError,
  ToolResult,
} from "../tool/mod.ts";
import { decodeArguments } from "./argument_rewrite.ts";
import { decodeCallsOf, type DecodedCall } from "./decode.ts";
import { encodeResultsFor, type ResultLoss } from "./encode.ts";
import type { ExportNames } from "./export_names.ts";
import type { Target } from "./target.ts";
import type { MessageOf } from "./targets.ts";

/** Runs calls, such as a `ToolDispatcher`: one result each, in order, even if a call fails. */
export interface CallDispatcher<Context = unknown> {
  dispatchAll(
    calls: readonly (
      | {
        readonly name: string;
        readonly arguments?: unknown;
        readonly callId?: string;
        readonly decode?: (args: unknown) => unknown;
      }
      | {
        readonly ticket: string;
        readonly answers?: Answers;
        readonly decode?: (args: unknown) => unknown;
      }
    )[],
    context?: Context,
  ): Promise<readonly ToolResult[]>;
}

/** Options for a turn. */
export interface TurnOptions<Context = unknown> {
  /** Runs the calls: a `ToolDispatcher` over the tools that were exported. */
  readonly dispatcher: CallDispatcher<Context>;
  readonly names: ExportNames;
  /** Fields that the host adds to each call. */
  readonly context?: Context;
}

/** A call of a turn that waits for answers. */
export interface WaitingTurnCall {
  readonly callId: string;
  readonly wireName: string;
  readonly questions: readonly Question[];
  readonly ticket: string;
  /** The reason why the call could not be resumed. Its ticket is still valid. */
  readonly error?: ToolCallError;
}

/** A turn. It is JSON: it can be stored while its calls wait, and resumed in another process. */
export interface Turn<Message = unknown> {
  readonly calls: readonly DecodedCall[];
  /** The results, in the order of the calls. */
  readonly results: readonly ToolResult[];
  /** The messages to send back, once `suspended` is empty: providers require all results. */
  readonly messages: readonly Message[];
  /** The calls that wait for answers. {@linkcode resumeTurn} resumes them. */
  readonly suspended: readonly WaitingTurnCall[];
  /** The images and files in results that the target does not take. */
  readonly losses: readonly ResultLoss[];
}

/** The answers to the questions of a turn, by the ids of its calls. */
export interface TurnAnswers {
  readonly [callId: string]: Answers;
}

/** Runs a whole turn with the record of a target. */
export async function dispatchResponseOf<Of extends Target, Context = unknown>(
  target: Of,
  response: unknown,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Of>>> {
  return await dispatchCallsOf(target, decodeCallsOf(target, response, options.names), options);
}

/** Runs the calls of a turn with the record of a target. */
export async function dispatchCallsOf<Of extends Target, Context = unknown>(
  target: Of,
  calls: readonly DecodedCall[],
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Of>>> {
  const { dispatcher, names, context } = checkOptions(options);
  const routed = calls.filter((call) => call.problem === undefined);
  const answered = routed.length === 0 ? [] : await dispatcher.dispatchAll(
    routed.map(({ name, arguments: args, callId }) => {
      // Arguments that are not JSON are decoded after their repair. Others are decoded already.
      const rewrite = typeof args === "string" ? names.encodingOf(name)?.input : undefined;
      const decode = rewrite && { decode: (read: unknown) => decodeArguments(read, rewrite) };
      return { name, arguments: args, callId, ...decode };
    }),
    ...(context === undefined ? [] : [context]),
  );
  const inOrder = answered.values();
  const waiting = new Set<string>();
  const results = calls.map(({ problem, wireName, callId }) => {
    if (problem !== undefined) return ToolResult.error(problem.code, problem.message);
    const result = inOrder.next().value;
    const action = `Cannot call ${JSON.stringify(clip(wireName))}`;
    if (result === undefined) {
      return ToolResult.error("threw", `${action}: the dispatcher returned no result`);
    }
    // Answers are assigned by call ids, so two suspended calls must not share an id.
    return isSuspended(result) && waiting.size === waiting.add(callId).size
      ? ToolResult.error(
        "unavailable",
        `${action}: another call with its id waits for an answer; call it again after that`,
      )
      : result;
  });
  return turnOf(target, calls, results, names);
}

/** Resumes the calls of a turn with the record of a target. */
export async function resumeTurnOf<Of extends Target, Context = unknown>(
  target: Of,
  turn: Pick<Turn, "calls" | "results">,
  answers: TurnAnswers,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Of>>> {
  const { dispatcher, names, context } = checkOptions(options);
  const { calls } = turn;
  const results = [...turn.results];
  checkTurnAnswers(turn, answers);
  const places: number[] = [];
  const resumed: Parameters<CallDispatcher["dispatchAll"]>[0][number][] = [];
  results.forEach((result, place) => {
    const callId = calls[place]?.callId ?? "";
    const own = Object.hasOwn(answers, callId) ? answers[callId] : undefined;
    if (!isSuspended(result) || own === undefined) return;
    places.push(place);
    resumed.push({ ticket: result.ticket, answers: own });
  });
  const answered = resumed.length === 0
    ? []
    : await dispatcher.dispatchAll(resumed, ...(context === undefined ? [] : [context]));
  const errors = new Map<number, ToolCallError>();
  places.forEach((place, index) => {
    const result = answered[index];
    if (result === undefined) return;
    const { code, retryable = false } = result.ok ? {} : result.error;
    // Nothing has run, and the ticket is still valid, so the call keeps waiting.
    const isWaiting = retryable && (code === "unavailable" || code === "overloaded");
    if (isWaiting && !result.ok) errors.set(place, result.error);
    else results[place] = result;
  });
  return turnOf(target, calls, results, names, errors);
}

function checkTurnAnswers(
  { calls, results }: Pick<Turn, "calls" | "results">,
  answers: TurnAnswers,
): void {
  if (!isObject(answers)) fail("resume the turn", "the answers must be an object");
  const resultsOf = groupBy(results, (_, index) => calls[index]?.callId);
  for (const [callId, byKey] of Object.entries(answers)) {
    const action = `resume the call ${JSON.stringify(clip(callId))}`;
    const meant = resultsOf.get(callId) ?? fail(action, "the turn has no call with that id");
    if (!isObject(byKey)) fail(action, "its answers must be an object");
    // Calls may share an id, but only one of them may be suspended.
    const [waiting, ...others] = meant.filter(isSuspended);
    if (others.length > 0) fail(action, "several suspended calls have that id");
    for (const [key, answer] of Object.entries(waiting === undefined ? {} : byKey)) {
      const shown = JSON.stringify(clip(key));
      if (waiting?.questions.some((question) => question.key === key) !== true) {
        fail(action, `it has no question ${shown}`);
      }
      if (!["accept", "decline", "cancel"].includes(answer?.action)) {
        fail(
          action,
          `the answer to ${shown} must be an object with the "action" accept, decline or cancel`,
        );
      }
    }
  }
}

function turnOf<Of extends Target>(
  target: Of,
  calls: readonly DecodedCall[],
  results: readonly ToolResult[],
  names: ExportNames,
  errors?: ReadonlyMap<number, ToolCallError>,
): Turn<MessageOf<Of>> {
  const suspended: WaitingTurnCall[] = [];
  const answered: DecodedCall[] = [];
  const done: ToolResult[] = [];
  calls.forEach((call, index) => {
    // There is a result for each call.
    const result = results[index] as ToolResult;
    if (isSuspended(result)) {
      const { questions, ticket } = result;
      const error = errors?.get(index);
      suspended.push({
        ...{ callId: call.callId, wireName: call.wireName, questions, ticket },
        ...(error && { error }),
      });
    } else {
      answered.push(call);
      done.push(result);
    }
  });
  const losses: ResultLoss[] = [];
  const messages = encodeResultsFor(target, answered, done, names, (loss) => losses.push(loss));
  return { calls, results, messages, suspended, losses };
}

function checkOptions<Context>(options: TurnOptions<Context>): TurnOptions<Context> {
  rejectUnknownFields(
    "dispatch the calls",
    options,
    ["dispatcher", "names", "context"] satisfies (keyof TurnOptions)[],
    () => 'what the host adds to each call goes into "context"',
  );
  if (typeof options.dispatcher?.dispatchAll !== "function") {
    fail("dispatch the calls", "the option dispatcher must be a ToolDispatcher");
  }
  return options;
}
