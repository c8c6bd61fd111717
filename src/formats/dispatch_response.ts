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
import { decodeCalls, type DecodedCall } from "./decode.ts";
import { encodeResults, type ResultLoss } from "./encode.ts";
import type { ExportNames } from "./export_names.ts";
import type { MessageOf, TargetLike } from "./targets.ts";

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

const FIELDS: readonly (keyof TurnOptions)[] = ["dispatcher", "names", "context"];

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

/**
 * Does a whole turn: reads the calls in a response, runs them in parallel, and writes the messages
 * to send back, in the order of the calls. Every call is answered, even if its tool was not exported,
 * its arguments are not JSON, or it was cut off. Calls that share an id are all run.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { dispatchResponse, exportTools } from "@plue/tools/formats";
 *
 * const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
 * const toolset = new ToolRegistry({ tools: [ping] }).select();
 * const dispatcher = new ToolDispatcher(toolset);
 * const { names } = exportTools(toolset, "anthropic");
 *
 * const response = { content: [{ type: "tool_use", id: "t1", name: "ping", input: {} }] };
 * const { messages } = await dispatchResponse("anthropic", response, { dispatcher, names });
 * assert.equal(messages[0]?.content[0]?.content, "pong");
 * ```
 *
 * @throws {RangeError} If there is no such target.
 * @throws {TypeError} If the response has another shape.
 */
export async function dispatchResponse<Like extends TargetLike, Context = unknown>(
  target: Like,
  response: unknown,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  return await dispatchCalls(target, decodeCalls(target, response, options.names), options);
}

/** Runs the calls of a turn that are decoded already, such as the calls of a stream. */
export async function dispatchCalls<Like extends TargetLike, Context = unknown>(
  target: Like,
  calls: readonly DecodedCall[],
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
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

/**
 * Resumes the calls of a turn that wait for answers, in this process or another one with the same
 * tickets. Calls without an answer continue to wait, and so do calls that cannot be resumed because a
 * store is unreachable or too many calls run: pass their answers again later.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { memoryCallStore, storedTickets } from "@plue/tools/calls";
 * import { dispatchResponse, exportTools, resumeTurn } from "@plue/tools/formats";
 *
 * const toolset = new ToolRegistry({
 *   tools: [{ name: "rm", description: "Deletes.", requiresApproval: true, execute: () => "gone" }],
 * }).select();
 * const dispatcher = new ToolDispatcher(toolset, {
 *   approve: "ask",
 *   tickets: storedTickets(memoryCallStore()),
 * });
 * const { names } = exportTools(toolset, "anthropic");
 *
 * const turn = await dispatchResponse("anthropic", {
 *   content: [{ type: "tool_use", id: "t1", name: "rm", input: {} }],
 * }, { dispatcher, names });
 * assert.deepEqual([turn.messages, turn.suspended.length], [[], 1]);
 *
 * const answers = { t1: { "plue:approval": { action: "accept" } } } as const;
 * const { messages } = await resumeTurn("anthropic", turn, answers, { dispatcher, names });
 * assert.deepEqual(messages, [{
 *   role: "user",
 *   content: [{ type: "tool_result", tool_use_id: "t1", content: "gone" }],
 * }]);
 * ```
 *
 * @param turn The turn, which may have been stored as JSON meanwhile.
 * @param answers The answers by the ids of the calls.
 * @returns The turn with all results so far.
 * @throws {TypeError} If an answer is invalid, or its call has no such question. Nothing has run then.
 */
export async function resumeTurn<Like extends TargetLike, Context = unknown>(
  target: Like,
  turn: Pick<Turn, "calls" | "results">,
  answers: TurnAnswers,
  options: TurnOptions<Context>,
): Promise<Turn<MessageOf<Like>>> {
  const { dispatcher, names, context } = checkOptions(options);
  const { calls } = turn;
  const results = [...turn.results];
  checkTurnAnswers(turn, answers);
  const places: number[] = [];
  const resumed: Parameters<CallDispatcher["dispatchAll"]>[0][number][] = [];
  results.forEach((result, place) => {
    const callId = calls[place]?.callId ?? "";
    const given = Object.hasOwn(answers, callId) ? answers[callId] : undefined;
    if (!isSuspended(result) || given === undefined) return;
    places.push(place);
    resumed.push({ ticket: result.ticket, answers: given });
  });
  const answered = resumed.length === 0
    ? []
    : await dispatcher.dispatchAll(resumed, ...(context === undefined ? [] : [context]));
  const errors = new Map<number, ToolCallError>();
  places.forEach((place, index) => {
    const result = answered[index];
    if (result === undefined) return;
    // Nothing has run, and the ticket is still valid, so the call keeps waiting.
    if (!result.ok && isPassing(result.error)) errors.set(place, result.error);
    else results[place] = result;
  });
  return turnOf(target, calls, results, names, errors);
}

/** True if a call was not resumed for a reason that may pass. */
function isPassing({ code, retryable }: ToolCallError): boolean {
  return retryable && (code === "unavailable" || code === "overloaded");
}

function checkTurnAnswers(
  { calls, results }: Pick<Turn, "calls" | "results">,
  answers: TurnAnswers,
): void {
  if (!isObject(answers)) fail("resume the turn", "the answers must be an object");
  const resultsOf = groupBy(results, (_, index) => calls[index]?.callId);
  for (const [callId, given] of Object.entries(answers)) {
    const action = `resume the call ${JSON.stringify(clip(callId))}`;
    const meant = resultsOf.get(callId) ?? fail(action, "the turn has no call with that id");
    if (!isObject(given)) fail(action, "its answers must be an object");
    // Calls may share an id, but only one of them may be suspended.
    const [waiting, ...others] = meant.filter(isSuspended);
    if (others.length > 0) fail(action, "several suspended calls have that id");
    for (const [key, answer] of Object.entries(waiting === undefined ? {} : given)) {
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

function turnOf<Like extends TargetLike>(
  target: Like,
  calls: readonly DecodedCall[],
  results: readonly ToolResult[],
  names: ExportNames,
  errors?: ReadonlyMap<number, ToolCallError>,
): Turn<MessageOf<Like>> {
  const suspended: WaitingTurnCall[] = [];
  const answered: DecodedCall[] = [];
  const given: ToolResult[] = [];
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
      given.push(result);
    }
  });
  const losses: ResultLoss[] = [];
  const messages = encodeResults(target, answered, given, names, (loss) => losses.push(loss));
  return { calls, results, messages, suspended, losses };
}

function checkOptions<Context>(options: TurnOptions<Context>): TurnOptions<Context> {
  rejectUnknownFields(
    "dispatch the calls",
    options,
    FIELDS,
    () => 'what the host adds to each call goes into "context"',
  );
  if (typeof options.dispatcher?.dispatchAll !== "function") {
    throw new TypeError(
      "Cannot dispatch the calls: the option dispatcher must be a ToolDispatcher",
    );
  }
  return options;
}
