/**
 * A call that a plue service runs: what happens meanwhile is handed on, and what it asks is asked here.
 *
 * @module
 */

import { EventSourceParserStream } from "eventsource-parser/stream";
import { messagesOf } from "../../adapters/mcp/server_errors.ts";
import type { TaskState } from "../../execute/durable/mod.ts";
import type { ToolEvent } from "../../execute/mod.ts";
import {
  type Answer,
  type Answers,
  argumentsText,
  isFailureCode,
  isObject,
  isSuspended,
  type Question,
  type ToolContext,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";

/** Where a service is, and the headers that it wants. */
export interface ServiceAddress {
  /** Without a query, and without a `/` at its end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** How much of the arguments is shown with a question, in characters. */
const MAX_ARGUMENTS = 1_000;

/** Runs a call at the service, and answers its questions by asking whoever calls here. */
export async function* callRemotely(
  service: ServiceAddress,
  id: string,
  params: unknown,
  context: ToolContext,
): AsyncGenerator<unknown, unknown> {
  const asker = new Asker(params, context);
  let path = `/tools/${encodeURIComponent(id)}/execute`;
  let body: unknown = { arguments: params };
  for (;;) {
    const response = await send(service, "POST", path, context, body);
    if (!(response instanceof Response)) return response;
    const result = isStream(response)
      ? yield* readEvents(service, response, context)
      : response.status === 202
      ? await followTask(service, await response.json(), context, asker)
      : await refusal(response);
    if (result.ok) return result.content;
    if (!isSuspended(result)) return failureOf(result);
    const answers = await asker.askAll(result.questions);
    path = `/calls/${encodeURIComponent(response.headers.get("x-call-id") ?? "call")}`;
    body = { ticket: result.ticket, answers };
  }
}

/** Sends a request; a failure if the service is out of reach. */
async function send(
  { url, headers }: ServiceAddress,
  method: "GET" | "POST" | "DELETE",
  path: string,
  context: ToolContext,
  body?: unknown,
): Promise<Response | ToolFailure> {
  try {
    return await fetch(url + path, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        accept: "text/event-stream",
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: "manual",
      // What is deleted is what was aborted.
      ...(method === "DELETE" ? {} : { signal: context.signal }),
    });
  } catch (error) {
    context.throwIfAborted();
    return ToolResult.error("unavailable", `Cannot reach ${url}: ${messagesOf(error)}`);
  }
}

function isStream({ ok, body, headers }: Response): boolean {
  return ok && body !== null &&
    headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** The events of a stream, as JSON. */
async function* eventsOf({ body }: Response): AsyncGenerator<unknown, void> {
  const events = body
    ?.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of events ?? []) yield JSON.parse(data);
}

/** Hands on the events of a call, and gives its result. */
async function* readEvents(
  { url }: ServiceAddress,
  response: Response,
  context: ToolContext,
): AsyncGenerator<unknown, ToolResult> {
  for await (const read of eventsOf(response)) {
    const event = read as ToolEvent;
    if (event.type === "output") yield event.value;
    else if (event.type === "metadata") context.metadata(event.value);
    else if (event.type === "progress") {
      const { done, total, message } = event.progress;
      context.progress(done, total, message);
    } else if (event.type === "result") return event.result;
  }
  return ToolResult.error("unavailable", `The connection to ${url} ended before the result`);
}

/** Follows a task to its end. It is cancelled there when it is aborted here. */
async function followTask(
  service: ServiceAddress,
  { id }: TaskState,
  context: ToolContext,
  asker: Asker,
): Promise<ToolResult> {
  const path = `/calls/${encodeURIComponent(id)}`;
  let hasEnded = false;
  context.defer(async () => {
    if (!hasEnded) await send(service, "DELETE", path, context);
  });
  const response = await send(service, "GET", path, context);
  if (!(response instanceof Response)) return response;
  if (!isStream(response)) return await refusal(response);
  for await (const state of eventsOf(response)) {
    const { status, progress, questions, result } = state as TaskState;
    if (progress !== undefined) context.progress(progress.done, progress.total, progress.message);
    if (status === "input_required") {
      const answers = await asker.askAll(questions ?? []);
      const answered = await send(service, "POST", path, context, { answers });
      if (!(answered instanceof Response)) return answered;
      if (!answered.ok) return await refusal(answered);
      await answered.body?.cancel();
    } else if (result !== undefined) {
      hasEnded = true;
      return result;
    }
  }
  return ToolResult.error("unavailable", `The connection to ${service.url} ended before the task`);
}

/** Asks what a service wants to know. */
class Asker {
  readonly #params: unknown;
  readonly #context: ToolContext;
  #asked = 0;

  constructor(params: unknown, context: ToolContext) {
    this.#params = params;
    this.#context = context;
  }

  /** The answers to questions, asked one after the other. */
  async askAll(questions: readonly Question[]): Promise<Answers> {
    const answers: [string, Answer][] = [];
    for (const question of questions) answers.push([question.key, await this.#ask(question)]);
    return Object.fromEntries(answers);
  }

  async #ask(
    { kind, message, schema, url, issues = [], arguments: args }: Question,
  ): Promise<Answer> {
    // Hooks of the service may have changed the arguments that are asked about.
    const differ = args !== undefined && JSON.stringify(args) !== JSON.stringify(this.#params);
    const shown = differ ? argumentsText(args, MAX_ARGUMENTS) : "";
    if (shown === undefined) {
      throw new RangeError("The service asks about other arguments, too long to be shown");
    }
    const words = [
      ...issues.map((issue) => issue.message),
      message,
      ...(differ ? [`It runs with ${shown}`] : []),
    ];
    // The keys of the service need not be new ones here.
    return await this.#context.ask(`question-${++this.#asked}`, {
      kind,
      message: words.join("\n"),
      ...(schema === undefined ? {} : { schema }),
      ...(url === undefined ? {} : { url }),
    });
  }
}

/** A failure as a tool may return it. */
function failureOf({ error: { code, message, ...more } }: ToolFailure): ToolFailure {
  return ToolResult.error(code, message, more);
}

/** The failure of a call that did not begin. */
async function refusal(response: Response): Promise<ToolFailure> {
  const problem: unknown = await response.json().catch(() => undefined);
  const { code, detail } = isObject(problem) ? problem : {};
  return ToolResult.error(
    isFailureCode(code) ? code : "unavailable",
    typeof detail === "string" ? detail : `The service answered ${response.status}`,
  );
}
