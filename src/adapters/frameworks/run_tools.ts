/**
 * The loop of an agent over a provider's own client: ask the model, run its calls, send the
 * results, until it answers. One loop for all clients, streamed or not.
 *
 * @module
 */

import {
  accumulateCalls,
  type CallDispatcher,
  decodeCalls,
  type DecodedCall,
  dispatchCalls,
  encodeResults,
  type Exportable,
  type ExportNames,
  type ExportOptions,
  Exposure,
  type ResultLoss,
  resumeTurn,
  type StreamTarget,
  type TargetName,
  targetOf,
  type TurnAnswers,
} from "../../formats/mod.ts";
import {
  isFunction,
  isObject,
  isSuspended,
  refuse,
  refuseOthers,
  type ToolResult,
  wholeFrom,
} from "../../tool/mod.ts";
import {
  type ClientFormat,
  clientFormat,
  type ClientRequest,
  type ClientTarget,
  type EventOf,
  type MessageIn,
  type ResponseOf,
} from "./client_formats.ts";

/** The calls of a turn of which some wait for answers, with all results so far. It is JSON. */
export interface SuspendedTurn {
  readonly calls: readonly DecodedCall[];
  /** In the order of the calls. A suspended one has its questions and its ticket. */
  readonly results: readonly ToolResult[];
}

/** Options of a loop. */
export interface RunToolsOptions<Target extends ClientTarget, Context = unknown> {
  /** Which of the provider's APIs is used, and whether tools are strict. */
  readonly target: Target;
  /** The tools: a toolset, or a list. A toolset is listed anew before each request. */
  readonly tools: Exportable;
  /** Runs the calls: a `ToolDispatcher` over the tools. */
  readonly dispatcher: CallDispatcher<Context>;
  /** What the host adds to each call. */
  readonly context?: Context;
  /** How the tools are exported. */
  readonly options?: ExportOptions;
  /**
   * How many requests are made at most.
   *
   * @default {20}
   */
  readonly maxTurns?: number;
  /** Aborts the request or the calls; the loop then rejects. */
  readonly signal?: AbortSignal;
  /** Where an earlier run stopped, to go on from there with its `messages`. */
  readonly suspended?: SuspendedTurn;
  /** The answers for its questions, by the id of the call, then by the question's key. */
  readonly answers?: TurnAnswers;
}

const FIELDS: readonly (keyof RunToolsOptions<ClientTarget>)[] = [
  "target",
  "tools",
  "dispatcher",
  "context",
  "options",
  "maxTurns",
  "signal",
  "suspended",
  "answers",
];

/** What a loop ends with. */
export interface ToolRun<Message = unknown, Response = unknown> {
  /**
   * Why it stopped: the model answered, `maxTurns` requests were made, or calls wait for answers.
   */
  readonly stop: "answer" | "turns" | "suspended";
  /**
   * The whole conversation: what was asked, what the model said, and the results of its calls. It
   * can be sent as it is. Where calls wait, it ends before the results of their turn.
   */
  readonly messages: Message[];
  /** The last response; absent if no request was made. */
  readonly response?: Response;
  /** The turn with the calls that wait. */
  readonly suspended?: SuspendedTurn;
  /** The images and files in results that the target does not take, if there were any. */
  readonly losses?: readonly ResultLoss[];
}

/** What happens in a loop. */
export type ToolRunEvent<Message = unknown, Response = unknown, Event = unknown> =
  /** An event of the provider's stream. */
  | { readonly type: "event"; readonly event: Event }
  /** The conversation has a new message. */
  | { readonly type: "message"; readonly message: Message }
  /** A call has ended. */
  | { readonly type: "result"; readonly call: DecodedCall; readonly result: ToolResult }
  /** The loop has ended. Always the last event. */
  | { readonly type: "run"; readonly run: ToolRun<Message, Response> };

/**
 * Asks a model until it has no more calls: sends the request with the tools, runs the calls through
 * the dispatcher, and sends their results.
 *
 * The client is the provider's own (`openai`, `@anthropic-ai/sdk`), or an object with the same
 * functions: `chat.completions.create`, `responses.create` or `messages.create`, by the target.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { runTools } from "@plue/tools/frameworks";
 *
 * const tools = new ToolRegistry({
 *   tools: [defineTool({ name: "ping", description: "Answers.", execute: () => "pong" })],
 * }).select();
 *
 * // const client = new Anthropic();
 * const client = {
 *   messages: {
 *     create: (body: { model: string; messages: object[] }) =>
 *       Promise.resolve({
 *         content: body.messages.length === 1
 *           ? [{ type: "tool_use", id: "toolu_1", name: "ping", input: {} }]
 *           : [{ type: "text", text: "It says pong." }],
 *       }),
 *   },
 * };
 * const { stop, messages } = await runTools(
 *   client,
 *   { model: "claude", messages: [{ role: "user", content: "Ping it." }] },
 *   { target: "anthropic", tools, dispatcher: new ToolDispatcher(tools) },
 * );
 * assert.equal(stop, "answer");
 * assert.deepEqual(messages[2], {
 *   role: "user",
 *   content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "pong" }],
 * });
 * ```
 *
 * @param client The provider's client.
 * @param request The client's request. Tools in it are sent too, before plue's.
 * @param options The tools, and what runs their calls.
 * @returns Why the loop stopped, the conversation, and the last response. Rejects with the client's
 * error, or if the signal aborts.
 * @throws {TypeError} If an option is wrong, a tool cannot be exported, or the client has no such
 * function.
 */
export async function runTools<Client, const Target extends ClientTarget, Context>(
  client: Client,
  request: ClientRequest<Client, Target>,
  options: RunToolsOptions<Target, Context>,
): Promise<ToolRun<MessageIn<Client, Target>, ResponseOf<Client, Target>>> {
  let run: ToolRun | undefined;
  for await (const event of loop(client, request, options, false)) {
    if (event.type === "run") run = event.run;
  }
  // The last event has the run, whose types follow from the client.
  return run as ToolRun<never, never>;
}

/**
 * {@linkcode runTools} with streamed responses: the provider's own events as they come, each new
 * message of the conversation, each result, and the run last. Leaving the loop ends it.
 *
 * @example Usage
 * ```ts ignore
 * for await (const event of streamTools(client, request, options)) {
 *   if (event.type === "event") show(event.event);
 *   if (event.type === "run") conversation = event.run.messages;
 * }
 * ```
 *
 * @param client The provider's client.
 * @param request The client's request, without `stream`.
 * @param options The tools, and what runs their calls.
 * @returns The events. Rejects as {@linkcode runTools} does.
 */
export function streamTools<Client, const Target extends ClientTarget, Context>(
  client: Client,
  request: ClientRequest<Client, Target>,
  options: RunToolsOptions<Target, Context>,
): AsyncGenerator<
  ToolRunEvent<MessageIn<Client, Target>, ResponseOf<Client, Target>, EventOf<Client, Target>>,
  void
> {
  // The types follow from the client, which the loop sees by its format.
  return loop(client, request, options, true) as AsyncGenerator<ToolRunEvent<never, never, never>>;
}

type Json = { readonly [field: string]: unknown };

const ACTION = "run the tools";
const checkTurns = wholeFrom(1);

async function* loop<Context>(
  client: unknown,
  request: object,
  said: RunToolsOptions<ClientTarget, Context>,
  streamed: boolean,
): AsyncGenerator<ToolRunEvent, void> {
  const options: RunToolsOptions<ClientTarget, Context> = Object(said);
  refuseOthers(ACTION, options, FIELDS);
  const { dispatcher, signal, maxTurns = 20, suspended } = options;
  const given: Json = Object(request);
  const target = targetOf(options.target as TargetName).id as StreamTarget;
  const format = clientFormat(target) ??
    refuse(ACTION, `there is no client for the target "${target}"`);
  if (!isFunction(dispatcher?.dispatchAll)) {
    refuse(ACTION, "the option dispatcher must be a ToolDispatcher over the tools");
  }
  checkTurns(ACTION, maxTurns, "maxTurns");
  const create = createOf(client, format);
  const exposure = new Exposure(options.tools, target, options.options);
  const { toolChoice, ...rest } = options.options ?? {};
  // A model that has to call a tool each time would never answer.
  const later = toolChoice === "required" || typeof toolChoice === "object"
    ? new Exposure(options.tools, target, rest)
    : exposure;
  const context = { ...options.context, ...(signal === undefined ? {} : { signal }) } as Context;
  if (isObject(given["conversation"]) || typeof given["conversation"] === "string") {
    refuse(ACTION, "the request must not name a conversation: the loop sends all of it each time");
  }
  const messages: unknown[] = conversationOf(given, format);
  let carried: Json = {};
  let response: unknown;
  const losses: ResultLoss[] = [];

  /** The end of the loop. */
  function ended(stop: ToolRun["stop"], waiting?: SuspendedTurn): ToolRunEvent {
    const run: ToolRun = {
      stop,
      messages,
      ...(response === undefined ? {} : { response }),
      ...(waiting === undefined ? {} : { suspended: waiting }),
      ...(losses.length === 0 ? {} : { losses }),
    };
    return { type: "run", run };
  }

  /** Tells of the results of a turn, and appends them. */
  function* close(turn: SuspendedTurn, names: ExportNames): Generator<ToolRunEvent, void> {
    const { calls, results } = turn;
    for (const [index, call] of calls.entries()) {
      // There are as many results as calls.
      yield { type: "result", call, result: results[index] as ToolResult };
    }
    const lose = (loss: ResultLoss): unknown => losses.push(loss);
    for (const message of encodeResults(target, calls, results, names, lose)) {
      messages.push(message);
      yield { type: "message", message };
    }
  }

  if (suspended !== undefined) {
    const { names } = exposure.adapter.export(options.tools);
    const given = { dispatcher, names, context };
    const turn = await resumeTurn(target, suspended, options.answers ?? {}, given);
    if (turn.results.some(isSuspended)) return yield ended("suspended", turn);
    yield* close(turn, names);
  }
  for (let turn = 1;; turn++) {
    signal?.throwIfAborted();
    const current = turn === 1 && suspended === undefined ? exposure : later;
    const tools = [...listOf(given["tools"]), ...(current.export() as readonly unknown[])];
    const { names, request } = current.adapter.export(options.tools);
    const { stream: _stream, ...body } = given;
    const answer = await create({
      // Providers refuse settings without tools; those of the request win.
      ...(tools.length === 0 ? {} : request),
      ...body,
      ...carried,
      [format.conversation]: [...messages],
      // Providers refuse an empty list.
      ...(tools.length === 0 ? {} : { tools }),
      ...(streamed ? { stream: true } : {}),
    }, signal === undefined ? undefined : { signal });

    let calls: readonly DecodedCall[];
    let whole: Json;
    if (streamed) {
      const reader = accumulateCalls(target, names);
      const assembly = format.assemble();
      for await (const event of answer as AsyncIterable<Json>) {
        reader.push(event);
        assembly.push(event);
        yield { type: "event", event };
      }
      calls = reader.end();
      whole = assembly.end(calls) ??
        refuse("read the stream", "it ended before the response was complete");
    } else {
      whole = answer as Json;
      calls = decodeCalls(target, whole, names);
    }
    response = whole;
    carried = { ...carried, ...format.carried?.(whole) };
    for (const message of format.said(whole)) {
      messages.push(message);
      yield { type: "message", message };
    }
    const { results } = await dispatchCalls(target, calls, { dispatcher, names, context });
    signal?.throwIfAborted();
    if (results.some(isSuspended)) return yield ended("suspended", { calls, results });
    yield* close({ calls, results }, names);
    if (calls.length === 0 && format.paused?.(whole) !== true) return yield ended("answer");
    if (turn === maxTurns) return yield ended("turns");
  }
}

/** The function of a client that makes requests. */
function createOf(
  client: unknown,
  { path }: ClientFormat,
): (body: Json, options: { readonly signal: AbortSignal } | undefined) => Promise<unknown> {
  const part = path.reduce((object, name) => Object(object)[name] as unknown, client);
  const create: unknown = Object(part).create;
  if (!isFunction(create)) {
    refuse(ACTION, `the client must have the function ${path.join(".")}.create`);
  }
  return async (body, options) => await Reflect.apply(create, part, [body, options]) as unknown;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A copy of the conversation; Responses also takes it as one text. */
function conversationOf(request: Json, { conversation }: ClientFormat): unknown[] {
  const value = request[conversation];
  if (Array.isArray(value)) return [...value];
  if (conversation === "input") {
    if (value === undefined) return [];
    if (typeof value === "string") return [{ role: "user", content: value }];
  }
  return refuse(ACTION, `the request's ${conversation} must be a list`);
}
