/** An agent loop over a provider's client: request, run the calls, send the results, repeat. */

import type * as types from "../../formats/mod.ts";
import type { DecodedCall, ExportNames, Target, Turn } from "../../formats/mod.ts";
import * as formats from "../../formats/records.ts";
import { listOf } from "../../schema/mod.ts";
import * as check from "../../tool/mod.ts";
import { defined, fail, isObject, isSuspended, type ToolResult } from "../../tool/mod.ts";
import type { FrameworkOptions } from "./framework_tools.ts";
import {
  type ClientFormat,
  type ClientRequest,
  CLIENTS,
  type ClientTarget,
  type EventOf,
  type MessageIn,
  type ResponseOf,
} from "./client_formats.ts";

/** A turn with suspended calls, and all results so far. The value can be stored as JSON. */
export type SuspendedTurn = Pick<Turn, "calls" | "results">;

/** Options of a loop. */
export interface RunToolsOptions<Target extends ClientTarget, Context = unknown>
  extends FrameworkOptions<Context> {
  /** The target that names the provider's API, with strict or plain tools: `openai.chat.strict`. */
  readonly target: Target;
  /** A toolset, which is listed before each request, or a list of tools. */
  readonly tools: types.Exportable;
  /** The maximum number of requests. @default {20} */
  readonly maxTurns?: number;
  /** Aborts the request or the calls; the loop then rejects. */
  readonly signal?: AbortSignal;
  /** The suspended turn of an earlier run, to resume it with its `messages`. */
  readonly suspended?: SuspendedTurn;
  /** The answers to the questions of the turn. */
  readonly answers?: types.TurnAnswers;
}

const FIELDS: readonly (keyof RunToolsOptions<ClientTarget>)[] = [
  ...["target", "tools", "dispatcher", "context", "options"] as const,
  ...["maxTurns", "signal", "suspended", "answers"] as const,
];

/** The result of a loop. */
export interface ToolRun<Message = unknown, Response = unknown> {
  /** The reason for the end: the model answered, `maxTurns` was reached, or calls are suspended. */
  readonly stop: "answer" | "turns" | "suspended";
  /** The whole conversation, without the results of a suspended turn. It can be sent unchanged. */
  readonly messages: Message[];
  /** The last response; absent if no request was made. */
  readonly response?: Response;
  readonly suspended?: SuspendedTurn;
  /** The images and files in results that the target does not accept. */
  readonly losses?: readonly types.ResultLoss[];
}

/** An event of a loop. */
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
 * Runs an agent loop until the model makes no more calls: sends the request with the tools, runs
 * the calls through the dispatcher, and sends their results.
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
 * const responses = [
 *   { content: [{ type: "tool_use", id: "toolu_1", name: "ping", input: {} }] },
 *   { content: [{ type: "text", text: "It says pong." }] },
 * ];
 * // const client = new Anthropic();
 * const create = (_body: { messages: object[] }) => Promise.resolve(responses.shift());
 * const { stop, messages } = await runTools(
 *   { messages: { create } },
 *   { messages: [{ role: "user", content: "Ping it." }] },
 *   { target: "anthropic", tools, dispatcher: new ToolDispatcher(tools) },
 * );
 * assert.deepEqual([stop, messages.length], ["answer", 4]);
 * ```
 *
 * @param client The provider's client (`OpenAI`, `Anthropic`, `GoogleGenAI`, `BedrockRuntime`,
 * `Mistral`), or an object with the same function, such as `chat.completions.create`.
 * @param request The client's request. Tools in it are sent before plue's.
 * @returns A promise that rejects with the client's error, or if the signal aborts.
 * @throws {TypeError} If an option is invalid, a tool cannot be exported, or the client lacks the
 * function.
 */
export async function runTools<Client, const Target extends ClientTarget, Context>(
  client: Client,
  request: ClientRequest<Client, Target>,
  options: RunToolsOptions<Target, Context>,
): Promise<ToolRun<MessageIn<Client, Target>, ResponseOf<Client, Target>>> {
  let run: ToolRun | undefined;
  const loop = new ToolLoop(client, Object(request), Object(options), false);
  for await (const event of loop.run()) {
    if (event.type === "run") run = event.run;
  }
  // The last event contains the run. Its types depend on the client.
  return run as ToolRun<never, never>;
}

/**
 * {@linkcode runTools} with streamed responses: yields the provider's own events, each new message
 * of the conversation, each result, and the run last.
 *
 * @example Usage
 * ```ts ignore
 * for await (const event of streamTools(client, request, options)) {
 *   if (event.type === "event") show(event.event);
 *   if (event.type === "run") conversation = event.run.messages;
 * }
 * ```
 *
 * @param request The client's request, without `stream`.
 */
export async function* streamTools<Client, const Target extends ClientTarget, Context>(
  client: Client,
  request: ClientRequest<Client, Target>,
  options: RunToolsOptions<Target, Context>,
): AsyncGenerator<
  ToolRunEvent<MessageIn<Client, Target>, ResponseOf<Client, Target>, EventOf<Client, Target>>,
  void
> {
  // The types depend on the client, which the loop uses through the client's format.
  const events = new ToolLoop(client, Object(request), Object(options), true).run();
  yield* events as AsyncGenerator<ToolRunEvent<never, never, never>, void>;
}

type Json = { readonly [field: string]: unknown };

const ACTION = "run the tools";
const checkTurns = check.wholeFrom(1);

class ToolLoop<Context> {
  readonly #options: RunToolsOptions<ClientTarget, Context>;
  readonly #request: Json;
  readonly #streamed: boolean;
  readonly #target: Target;
  readonly #format: ClientFormat;
  readonly #create: ReturnType<typeof createOf>;
  readonly #later: types.ExportOptions | undefined;
  readonly #context: Context;
  readonly #messages: unknown[];
  readonly #losses: types.ResultLoss[] = [];
  /** Fields of the responses that the next request must repeat. */
  #carried: Json = {};
  #response: unknown;

  constructor(
    client: unknown,
    request: Json,
    options: RunToolsOptions<ClientTarget, Context>,
    streamed: boolean,
  ) {
    check.rejectUnknownFields(ACTION, options, FIELDS);
    const { dispatcher, signal, maxTurns = 20 } = options;
    if (!Object.hasOwn(CLIENTS, options.target)) {
      const names = Object.keys(CLIENTS).map((name) => `"${name}"`).join(", ");
      fail(ACTION, `the option target must be one of ${names}`);
    }
    [this.#target, this.#format] = CLIENTS[options.target];
    if (!check.isFunction(dispatcher?.dispatchAll)) {
      fail(ACTION, "the option dispatcher must be a ToolDispatcher over the tools");
    }
    checkTurns(ACTION, maxTurns, "maxTurns");
    this.#create = createOf(client, streamed && this.#format.streamed || this.#format.whole);
    const { toolChoice, ...rest } = options.options ?? {};
    // Later requests have no tool choice: with a call in every response, the loop would never end.
    this.#later = toolChoice === "required" || typeof toolChoice === "object"
      ? rest
      : options.options;
    this.#context = { ...options.context, ...defined({ signal }) } as Context;
    const { conversation } = request;
    if (isObject(conversation) || typeof conversation === "string") {
      fail(ACTION, 'the request must not have "conversation": each request has all messages');
    }
    this.#messages = conversationOf(request, this.#format);
    this.#request = request;
    this.#options = options;
    this.#streamed = streamed;
  }

  async *run(): AsyncGenerator<ToolRunEvent, void> {
    const { signal, maxTurns = 20, suspended } = this.#options;
    if (suspended !== undefined) {
      const { answers = {} } = this.#options;
      const options = this.#callOptions(this.#export(this.#options.options).names);
      const turn = await formats.resumeTurn(this.#target, suspended, answers, options);
      if (turn.results.some(isSuspended)) return yield this.#end("suspended", turn);
      yield* this.#finishTurn(turn);
    }
    for (let count = 1;; count++) {
      signal?.throwIfAborted();
      const isFirst = count === 1 && suspended === undefined;
      const exported = this.#export(isFirst ? this.#options.options : this.#later);
      const { holder } = this.#format;
      const own: Json = Object(holder === undefined ? this.#request : this.#request[holder]);
      const tools = [...listOf(own["tools"]), ...(formats.allTools(exported) as unknown[])];
      const { names, request } = exported;
      const answer = await this.#send(tools, request);
      const { calls, whole } = yield* this.#read(answer, names);
      this.#response = whole;
      this.#carried = { ...this.#carried, ...this.#format.carried?.(whole) };
      for (const message of this.#format.messages(whole)) yield this.#append(message);
      const turn = await formats.dispatchCalls(this.#target, calls, this.#callOptions(names));
      signal?.throwIfAborted();
      if (turn.results.some(isSuspended)) return yield this.#end("suspended", turn);
      yield* this.#finishTurn(turn);
      if (calls.length === 0 && this.#format.paused?.(whole) !== true) {
        return yield this.#end("answer");
      }
      if (count === maxTurns) return yield this.#end("turns");
    }
  }

  #export(options: types.ExportOptions | undefined) {
    return formats.exportTools(this.#options.tools, this.#target, options);
  }

  #callOptions(names: ExportNames) {
    return { dispatcher: this.#options.dispatcher, names, context: this.#context };
  }

  async #send(tools: readonly unknown[], settings: object): Promise<unknown> {
    const { signal } = this.#options;
    const { conversation, holder, streamed, rename } = this.#format;
    const { stream: _stream, ...body } = this.#request;
    const abort = signal && { [holder === undefined ? "signal" : "abortSignal"]: signal };
    const isInConfig = holder === "config";
    const own = {
      // Providers reject tool settings without tools; the request's settings take precedence.
      ...(tools.length === 0 ? {} : rename?.(settings) ?? settings),
      ...(holder === undefined ? body : Object(body[holder])),
      // Providers reject an empty list.
      ...(tools.length === 0 ? {} : { tools }),
      ...(isInConfig ? abort : {}),
    };
    return await this.#create({
      ...(holder === undefined ? own : body),
      ...(holder === undefined || Object.keys(own).length === 0 ? {} : { [holder]: own }),
      ...this.#carried,
      [conversation]: [...this.#messages],
      ...(this.#streamed && streamed === undefined ? { stream: true } : {}),
    }, isInConfig ? undefined : abort);
  }

  /** Yields the events of a streamed response, and returns the response with its calls. */
  async *#read(
    answer: unknown,
    names: ExportNames,
  ): AsyncGenerator<ToolRunEvent, { calls: readonly DecodedCall[]; whole: Json }> {
    if (!this.#streamed) {
      const whole = answer as Json;
      return { calls: formats.decodeCalls(this.#target, whole, names), whole };
    }
    const reader = formats.accumulateCalls(this.#target, names);
    const assembly = this.#format.assemble();
    // Bedrock's client returns an object with the stream.
    for await (const event of (Object(answer).stream ?? answer) as AsyncIterable<Json>) {
      reader.push(event);
      assembly.push(event);
      yield { type: "event", event };
    }
    const calls = reader.end();
    const whole = assembly.end(calls) ??
      fail("read the stream", "the stream ended before the response was complete");
    return { calls, whole };
  }

  *#finishTurn({ calls, results, messages, losses }: Turn): Generator<ToolRunEvent, void> {
    for (const [index, call] of calls.entries()) {
      // There are as many results as calls.
      yield { type: "result", call, result: results[index] as ToolResult };
    }
    this.#losses.push(...losses);
    for (const message of messages) {
      yield this.#append(this.#format.rename?.(Object(message)) ?? message);
    }
  }

  #append(message: unknown): ToolRunEvent {
    this.#messages.push(message);
    return { type: "message", message };
  }

  #end(stop: ToolRun["stop"], waiting?: SuspendedTurn): ToolRunEvent {
    const run: ToolRun = {
      stop,
      messages: this.#messages,
      ...defined({
        response: this.#response,
        suspended: waiting && { calls: waiting.calls, results: waiting.results },
        losses: this.#losses.length === 0 ? undefined : this.#losses,
      }),
    };
    return { type: "run", run };
  }
}

function createOf(
  client: unknown,
  path: string,
): (body: Json, options: object | undefined) => Promise<unknown> {
  const names = path.split(".");
  const name = names.pop() ?? "";
  const part = names.reduce((object, name) => Object(object)[name] as unknown, client);
  const create: unknown = Object(part)[name];
  if (!check.isFunction(create)) fail(ACTION, `the client must have the function ${path}`);
  return async (body, options) => await Reflect.apply(create, part, [body, options]) as unknown;
}

/** Copies the conversation, which may be one text for Responses. */
function conversationOf(request: Json, { conversation }: ClientFormat): unknown[] {
  const value = request[conversation];
  if (Array.isArray(value)) return [...value];
  if (conversation === "input" && value === undefined) return [];
  if (conversation !== "messages" && typeof value === "string") {
    return [{
      role: "user",
      ...(conversation === "input" ? { content: value } : { parts: [{ text: value }] }),
    }];
  }
  return fail(ACTION, `the request's ${conversation} must be a list`);
}
