/** A plue service as a source: the tools that its caller sees. The service runs their calls. */

import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";
import { boundedText, fetchOnce, messagesOf, wasNotSent } from "../../adapters/http/runtime.ts";
import { cleanTexts } from "../../formats/import_findings.ts";
import { hardenTool } from "../../schema/mod.ts";
import {
  type Answer,
  forwardedQuestion,
  isFailureCode,
  isListOf,
  isObject,
  isSuspended,
  isToolRun,
  makeTool,
  type Question,
  setOwn,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolReader,
  ToolResult,
} from "../../tool/mod.ts";
import type { TaskState } from "../../execute/durable/mod.ts";
import { CallContext, type ToolEvent, type ToolProgress } from "../../execute/mod.ts";
import { parsedJson, usageError } from "../terminal.ts";

export interface ServiceAddress {
  /** The URL of the service, without a query and without a `/` at the end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

const PAGE = 1_000;
const MAX_PAGES = 64;

/** The maximum size of a response in bytes: documents of large APIs have 40 million. */
const MAX_ANSWER = 64 * 1_024 * 1_024;

const ANSWER_MS = 30_000;
/** The time limit for a service that waits for a person, longer than its own: 20 minutes. */
const PERSON_MS = 1_200_000;
/** The maximum number of these waits in one call. */
const MAX_PERMISSIONS = 3;

const MAX_REDIRECTS = 5;

/**
 * Lists the tools of a service.
 *
 * @returns `undefined` if the server is not a plue service.
 * @throws {CommandError} If the service rejects the request.
 */
export async function readService(
  service: ServiceAddress,
  signal: AbortSignal,
  reader: ToolReader = {},
): Promise<readonly Tool[] | undefined> {
  const tools: Tool[] = [];
  const reads = Object.entries(reader).filter(([, value]) => value !== undefined);
  const cursors = new Set<string>();
  for (let cursor = "";;) {
    const query = new URLSearchParams({
      ...{ limit: String(PAGE), ...Object.fromEntries(reads) },
      ...(cursor && { cursor }),
    });
    const page = await readJson(service, `/tools?${query}`, signal);
    if (!isObject(page) || !Array.isArray(page["tools"])) return undefined;
    tools.push(...page["tools"].map((tool) => remoteTool(service, tool)));
    const { nextCursor } = page;
    if (typeof nextCursor !== "string") return tools;
    if (cursors.has(nextCursor) || cursors.size === MAX_PAGES) {
      throw usageError(`Cannot use the service ${service.url}: its listing does not end`);
    }
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
}

/**
 * Fetches a text of at most 64 MiB, within 30 seconds.
 *
 * @param headers Are sent to the origin of the URL, but not to another one after a redirect.
 * @throws {CommandError} If no server responds, or the response exceeds a bound.
 */
export async function fetchText(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  maxRedirects: number = MAX_REDIRECTS,
): Promise<{ readonly response: Response; readonly text: string }> {
  const late = AbortSignal.timeout(ANSWER_MS);
  try {
    let place = new URL(url);
    const { origin } = place;
    for (let redirects = 0;; redirects++) {
      const response = await fetch(place, {
        headers: place.origin === origin ? headers : { accept: headers["accept"] ?? "*/*" },
        redirect: "manual",
        signal: AbortSignal.any([signal, late]),
      });
      const location = response.headers.get("location");
      if (location !== null && REDIRECTS.includes(response.status) && redirects < maxRedirects) {
        await response.body?.cancel();
        place = new URL(location, place);
        if (/^https?:$/.test(place.protocol)) continue;
        throw new TypeError(`it redirects to an address that begins with ${place.protocol}`);
      }
      const text = await boundedText(response.body, MAX_ANSWER);
      if (text !== undefined) return { response, text };
      throw new RangeError(`its response has more than ${MAX_ANSWER} bytes`);
    }
  } catch (cause) {
    signal.throwIfAborted();
    const why = late.aborted ? `no whole answer within ${ANSWER_MS / 1_000} s` : messagesOf(cause);
    throw usageError(`Cannot reach ${url}: ${why}`, { cause });
  }
}

const REDIRECTS = [301, 302, 303, 307, 308];

async function readJson(
  { url, headers }: ServiceAddress,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  const all = { accept: "application/json", ...headers };
  const { response, text } = await fetchText(url + path, all, signal, 0);
  const type = response.headers.get("content-type") ?? "";
  const body = /\bjson\b/.test(type) ? parsedJson(text) : undefined;
  if (response.ok) return body;
  const { code, detail } = isObject(body) ? body : {};
  // A problem response of plue has a code. Another server has no such route.
  const isProblem = typeof code === "string" && typeof detail === "string";
  if (!isProblem || code === "not_found") return undefined;
  const hint = response.status === 401 ? '; give a token with --header "authorization: …"' : "";
  throw usageError(`Cannot use the service ${url}: ${detail}${hint}`);
}

function remoteTool(service: ServiceAddress, described: unknown): Tool {
  const { id, executable, requiresApproval: _, requiresTransaction: __, ...fields } =
    isObject(described) ? described : {};
  // The service is trusted, but its texts are cleaned, because people and models read them.
  if (hasTexts(fields)) cleanTexts(fields);
  return hardenTool(makeTool({
    ...fields as unknown as ToolDefinition,
    // The description has no labels, and the service may have imported the tool.
    labels: { produces: ["untrusted"], sends: true },
    ...(isObject(described) && executable !== false && {
      execute: (params: unknown, context: ToolContext) =>
        callRemotely(service, String(id), params, context),
    }),
  }));
}

/** Returns true if the texts have valid types; `makeTool` rejects others. */
function hasTexts(fields: Record<string, unknown>): boolean {
  const { title = "", description = "", tags = [], parameters = {}, returns = {} } = fields;
  return typeof title === "string" && typeof description === "string" &&
    isListOf(tags, (tag) => typeof tag === "string") && isObject(parameters) && isObject(returns);
}

type Outcome = ToolResult | Waiting;

interface Waiting {
  readonly questions: readonly Question[];
  /** The path for answers to the questions, below the service. */
  readonly path: string;
  readonly ticket?: string;
}

async function* callRemotely(
  service: ServiceAddress,
  id: string,
  params: unknown,
  context: ToolContext,
): AsyncGenerator<unknown, unknown> {
  let task: string | undefined;
  context.defer(async () => {
    const reason: unknown = context.signal.reason;
    // If this call is suspended, the service's task waits for an answer, and must not be cancelled.
    const isSuspended = isObject(reason) && reason["code"] === "input_required";
    if (task !== undefined && !isSuspended) await send(service, task, { method: "DELETE" });
  });
  let path = `/tools/${encodeURIComponent(id)}/execute`;
  let body: unknown = { arguments: params, callId: context.callId };
  let permissions = 0;
  let isForPerson = false;
  for (let round = 1;; round++) {
    // If this call is suspended and resumed, the service's call must not begin again.
    let begins = false;
    await context.step(`begun.${round}`, () => begins = true);
    let pending: Waiting | null = null;
    if (begins) {
      const started = (place: string): void => void (task = place);
      const deadline = CallContext.callOf(context)?.deadline;
      // The service ends its call in time, but a person may need longer.
      const resumeTime = isForPerson ? deadline?.suspend(PERSON_MS) : undefined;
      let outcome: Outcome;
      try {
        outcome = yield* run(service, path, body, context, started);
      } finally {
        resumeTime?.();
      }
      if ("ok" in outcome) {
        task = undefined;
        return outcome.ok ? outcome.content : outcome;
      }
      pending = outcome;
    }
    const waiting = await context.step(`asked.${round}`, () => pending);
    if (waiting === null) {
      return ToolResult.error("unavailable", "The call was interrupted; it may have run", {
        ran: "unknown",
      });
    }
    const { questions, ticket } = waiting;
    ({ path } = waiting);
    task = ticket === undefined ? path : undefined;
    const answers: Record<string, Answer> = {};
    for (const [index, question] of questions.entries()) {
      // The service cannot distinguish the callers, so one would act with another one's account.
      if (question.kind === "authorization" && context.principal) {
        const why = "its service requests a permission that all callers would use";
        return ToolResult.error("denied", `Cannot call "${id}": ${why}`);
      }
      const fields = forwardedQuestion(question, params);
      setOwn(answers, question.key, await context.ask(`asks.${round}.${index}`, fields));
    }
    body = { answers, ...(ticket && { ticket }) };
    isForPerson = questions.some(({ kind, resumes }) => kind === "authorization" && resumes) &&
      ++permissions <= MAX_PERMISSIONS;
  }
}

function send(
  { url, headers }: ServiceAddress,
  path: string,
  request: RequestInit,
): Promise<Response> {
  return fetchOnce(url + path, {
    headers: { "content-type": "application/json", accept: "text/event-stream", ...headers },
    redirect: "manual",
    ...request,
  });
}

const ENDED = ToolResult.error("unavailable", "The connection ended before the result", {
  ran: "unknown",
});

async function* run(
  service: ServiceAddress,
  path: string,
  body: unknown,
  context: ToolContext,
  started: (task: string) => void,
): AsyncGenerator<unknown, Outcome> {
  const { signal } = context;
  try {
    const request = { method: "POST", body: JSON.stringify(body), signal };
    const response = await send(service, path, request);
    const isJson = /\bjson\b/.test(response.headers.get("content-type") ?? "");
    const task = response.status === 202 && isJson
      ? parsedJson(await boundedText(response.body, MAX_PROBLEM) ?? "")
      : undefined;
    if (!isObject(task)) return yield* readEvents(response, context);
    const place = pathOf(String(task["id"]));
    started(place);
    return yield* readEvents(await send(service, place, { signal }), context);
  } catch (error) {
    context.throwIfAborted();
    CallContext.callOf(context)?.report("execute", error);
    // Without the address, because the callers of a gateway read this.
    return wasNotSent(error)
      ? ToolResult.error("unavailable", "The plue service cannot be reached", { ran: "no" })
      : ENDED;
  }
}

/** Reads the events of a stream; an abort of the signal and an event above the bound end it. */
export function eventsIn(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): ReadableStream<EventSourceMessage> {
  return body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(
      new EventSourceParserStream({ maxBufferSize: MAX_ANSWER, onError: "terminate" }),
      { ...(signal && { signal }) },
    );
}

async function* readEvents(
  response: Response,
  context: ToolContext,
): AsyncGenerator<unknown, Outcome> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!response.ok || response.body === null || !isStream) return await refusal(response);
  for await (const { event: name, data } of eventsIn(response.body, context.signal)) {
    if (name === "task") {
      const { id, progress, questions, result } = JSON.parse(data) as TaskState;
      if (progress !== undefined) reportProgress(progress, context);
      if (result !== undefined) return outcomeOf(result, id);
      if (questions !== undefined) return { questions, path: pathOf(id) };
      continue;
    }
    const event = JSON.parse(data) as ToolEvent;
    if (event.type === "output") yield event.value;
    else if (event.type === "metadata") context.metadata(event.value);
    else if (event.type === "progress") reportProgress(event.progress, context);
    else if (event.type === "result") return outcomeOf(event.result, context.callId);
  }
  return ENDED;
}

function pathOf(callId: string): string {
  return `/calls/${encodeURIComponent(callId)}`;
}

function reportProgress({ done, total, message }: ToolProgress, context: ToolContext): void {
  context.progress(done, total, message);
}

function outcomeOf(result: ToolResult, id: string): Outcome {
  if (isSuspended(result)) {
    const { questions, ticket } = result;
    return { questions, ticket, path: pathOf(id) };
  }
  if (result.ok) return result;
  const { code, message, ...more } = result.error;
  return ToolResult.error(code, message, more);
}

const MAX_PROBLEM = 1_048_576;

async function refusal(response: Response): Promise<ToolResult> {
  const text = await boundedText(response.body, MAX_PROBLEM).catch(() => undefined);
  const problem = parsedJson(text ?? "");
  const { code, detail, ran } = isObject(problem) ? problem : {};
  // A gateway that lost the service's answer sends a response without a code.
  const otherwise = response.status < 500 || isFailureCode(code) ? "no" : "unknown";
  return ToolResult.error(
    isFailureCode(code) ? code : "unavailable",
    typeof detail === "string" ? detail : `The service answered ${response.status}`,
    { ran: isToolRun(ran) ? ran : otherwise },
  );
}
