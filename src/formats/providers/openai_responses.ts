/**
 * OpenAI Responses, with namespaces, deferred loading and result schemas; its strict mode; and
 * Realtime, which has the same output items.
 *
 * @module
 */

import { OPENAI_NAME_RULE } from "../../select/mod.ts";
import { defined, isObject } from "../../tool/mod.ts";
import type {
  Answer,
  MediaFormat,
  StreamedParts,
  StreamFormat,
  StreamStep,
  WireCall,
} from "../call_format.ts";
import {
  asObject,
  type CallFields,
  callFrom,
  callReader,
  descriptionOf,
  given,
  type JsonRecord,
  plainText,
  streamedCall,
  textIn,
  textOf,
  unlessEmpty,
} from "../wire.ts";
import type { Chooses, LoseSetting, WireSettings } from "../export_options.ts";
import { OPENAI_RULES, OPENAI_STRICT_RULES, READ_BY_THE_MODEL } from "../form_rules.ts";
import {
  type CombinationRule,
  type Feature,
  features,
  type ListTarget,
  makeTarget,
  type Provider,
  type Target,
  type ToolView,
} from "../target.ts";
import { OPENAI_FORMATS, OPENAI_STRICT_LIMITS } from "./openai.ts";
import { CUSTOM_TOOL } from "./openai_chat.ts";

// Tools

/** A function in the `tools` of a Responses request, or inside a namespace. */
export interface OpenAiResponsesFunction extends OpenAiRealtimeTool {
  /** Always sent: without it, the API tries strict mode by itself. */
  strict: boolean;
  output_schema?: { [keyword: string]: unknown };
  defer_loading?: boolean;
  allowed_callers?: ("direct" | "programmatic")[];
  async?: boolean;
}

/** Functions under one name. */
export interface OpenAiResponsesNamespace {
  type: "namespace";
  name: string;
  description: string;
  tools: OpenAiResponsesFunction[];
}

/** A search for tools that the host runs. Models from gpt-5.4 on take it. */
export interface OpenAiResponsesToolSearch {
  type: "tool_search";
  execution: "client";
  description: string;
  parameters: { [keyword: string]: unknown };
}

/** An entry of the `tools` of a Responses request. */
export type OpenAiResponsesTool =
  | OpenAiResponsesFunction
  | OpenAiResponsesNamespace
  | OpenAiResponsesToolSearch;

/** One tool of an export, before namespaces are made. */
type ResponsesWire = OpenAiResponsesFunction | OpenAiResponsesToolSearch;

/** A function in the `tools` of a session. */
export interface OpenAiRealtimeTool {
  type: "function";
  name: string;
  description?: string;
  parameters: { [keyword: string]: unknown };
}

const FEATURES: readonly Feature[] = [
  "namespace",
  "returns",
  "strict",
  "deferLoading",
  "allowedCallers",
  "async",
];

const COMBINATIONS: readonly CombinationRule[] = [
  {
    name: "deferLoading",
    message: 'deferred tools need { type: "tool_search" } among the tools, and gpt-5.4 or later',
    effect: "warn",
    applies: (hints) => hints.deferLoading === true,
  },
  {
    name: "toolSearch",
    message: "a search for tools needs gpt-5.4 or later",
    effect: "warn",
    applies: (hints) => hints.toolSearch === true,
  },
  {
    name: "allowedCallers",
    message: 'calls from code need { type: "programmatic_tool_calling" } among the tools',
    effect: "warn",
    applies: (hints) => hints.allowedCallers?.some((caller) => caller !== "direct") === true,
  },
  {
    name: "allowedCallers empty",
    message: "an empty list of callers is rejected; it is omitted, and the model may call the tool",
    effect: "warn",
    applies: (hints) => hints.allowedCallers?.length === 0,
  },
  {
    name: "async",
    message: "asynchronous tools need GPT-6 or later",
    effect: "warn",
    applies: (hints) => hints.async === true,
  },
];

function wire(view: ToolView): ResponsesWire {
  const { deferLoading, allowedCallers = [], async, toolSearch } = view.hints;
  if (toolSearch === true) {
    const { description, parameters } = view;
    return { type: "tool_search", execution: "client", description, parameters: { ...parameters } };
  }
  return {
    ...functionItem(view),
    strict: view.strict,
    ...defined({
      output_schema: view.returns === undefined ? undefined : asObject(view.returns),
      defer_loading: deferLoading,
      allowed_callers: unlessEmpty(callers(allowedCallers)),
      async,
    }),
  };
}

/** The common part of Responses and Realtime. */
function functionItem(view: ToolView): OpenAiRealtimeTool {
  return {
    ...view.extra,
    type: "function",
    name: view.name,
    ...descriptionOf(view),
    parameters: view.parameters as { [keyword: string]: unknown },
  };
}

/** Callers by the names of this API: every call from code is `programmatic`. */
function callers(names: readonly string[]): ("direct" | "programmatic")[] {
  return [...new Set(names.map((name) => name === "direct" ? "direct" : "programmatic"))];
}

function assemble(
  tools: readonly { readonly view: ToolView; readonly wire: ResponsesWire }[],
): OpenAiResponsesTool[] {
  const list: OpenAiResponsesTool[] = [];
  const namespaces = new Map<string, OpenAiResponsesNamespace>();
  for (const { view, wire } of tools) {
    if (view.namespace === undefined || wire.type === "tool_search") {
      list.push(wire);
      continue;
    }
    let namespace = namespaces.get(view.namespace);
    if (namespace === undefined) {
      namespace = {
        type: "namespace",
        name: view.namespace,
        // It is required, and one for all tools of a namespace: the first that is found.
        description: tools.find((tool) =>
          tool.view.namespace === view.namespace &&
          tool.view.hints.namespaceDescription !== undefined
        )?.view.hints.namespaceDescription ?? `Tools of "${view.tool.namespace}".`,
        tools: [],
      };
      namespaces.set(view.namespace, namespace);
      list.push(namespace);
    }
    namespace.tools.push(wire);
  }
  return list;
}

// Settings

/** The settings of a Responses request, and of a session. */
export interface OpenAiResponsesRequest {
  tool_choice?: "auto" | "none" | "required" | { type: "function"; name: string };
  parallel_tool_calls?: boolean;
}

function choose(
  { toolChoice, parallel }: WireSettings,
  lose: LoseSetting,
): OpenAiResponsesRequest {
  const isNamed = typeof toolChoice === "object";
  const isInNamespace = isNamed && toolChoice.namespace !== undefined;
  if (isInNamespace) {
    lose(
      "toolChoice",
      "a request cannot choose a tool in a namespace, and any is required; " +
        "export with namespaces: false",
    );
  }
  return defined({
    tool_choice: isInNamespace
      ? "required" as const
      : isNamed
      ? { type: "function" as const, name: toolChoice.name }
      : toolChoice,
    parallel_tool_calls: parallel,
  });
}

// Calls

const CALL: CallFields = { id: "call_id", name: "name", input: "arguments" };
const CUSTOM_CALL: CallFields = { ...CALL, input: "input" };

/**
 * Makes the function that reads a response, its event, a list of items, an item or
 * the event that carries it.
 *
 * @param title Words for the response, with an article.
 */
function itemReader(title: string): (response: unknown) => readonly WireCall[] {
  const read = callReader({
    title,
    messages: ["response"],
    lists: ["output"],
    marks: ["item"],
    reasonOf: (response) => response["status"],
    isCall: isCallItem,
    call: callOf,
    others: ({ item }) => isObject(item) && isCallItem(item) ? [callOf(item)] : [],
  });
  return (response) =>
    textIn(response, "type") === "response.function_call_arguments.done"
      ? read({ ...Object(response), type: "function_call" })
      : read(response);
}

/** True if an item is a call that the host runs. */
function isCallItem(item: JsonRecord): boolean {
  return item["type"] === "function_call" || item["type"] === "custom_tool_call" ||
    isSearch(item);
}

/** True if an item is a search for tools that the host runs. */
function isSearch({ type, execution }: JsonRecord): boolean {
  return type === "tool_search_call" && execution === "client";
}

function callOf(raw: JsonRecord): WireCall {
  const custom = raw["type"] === "custom_tool_call";
  const call = callFrom(custom ? CUSTOM_CALL : CALL, raw);
  return {
    ...(isSearch(raw) ? { input: call.input, raw, name: "tool_search", searches: true } : call),
    id: call.id ?? textOf(raw["id"]),
    namespace: textOf(raw["namespace"]),
    // Some servers leave out the status of items; then the status of the response decides.
    ...(given(raw, "status") ? { cutOff: raw["status"] === "incomplete" } : {}),
    ...(custom ? { refusal: CUSTOM_TOOL } : {}),
  };
}

// Results

/** The caller: the model, or a program that it wrote. */
export type OpenAiCaller = { type: "direct" } | { type: "program"; caller_id: string };

/** The item that answers one call: of a function, of a search, or the refusal of a custom tool. */
export type OpenAiResponsesOutput =
  | {
    type: "tool_search_output";
    call_id: string;
    execution: "client";
    /** `incomplete`: the search failed. */
    status: "completed" | "incomplete";
    tools: (OpenAiResponsesFunction | OpenAiResponsesNamespace)[];
  }
  | {
    type: "function_call_output" | "custom_tool_call_output";
    call_id: string;
    output: string | OpenAiContentPart[];
    caller?: OpenAiCaller;
  };

/** A part of a result. */
export type OpenAiContentPart =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string; detail: "auto" }
  | { type: "input_file"; filename: string; file_data: string };

const IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The documents of the guide for file inputs, and the ends of their names. */
const DOCUMENTS: ReadonlyMap<string, string> = new Map([
  ["application/pdf", "pdf"],
  ["application/json", "json"],
  ["application/rtf", "rtf"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.oasis.opendocument.text", "odt"],
  ["application/vnd.ms-powerpoint", "ppt"],
  ["application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
  ["text/plain", "txt"],
  ["text/xml", "xml"],
]);

const MEDIA: MediaFormat<OpenAiContentPart> = {
  text: (text) => ({ type: "input_text", text }),
  file({ mimeType, data, name }) {
    const url = `data:${mimeType};base64,${data}`;
    if (IMAGES.has(mimeType)) return { type: "input_image", image_url: url, detail: "auto" };
    const end = DOCUMENTS.get(mimeType);
    if (end === undefined) return undefined;
    return { type: "input_file", filename: name ?? `file.${end}`, file_data: url };
  },
};

/** The output of a call. A program parses it as JSON by the schema, so a text is quoted. */
function outputOf(answer: Answer): string | OpenAiContentPart[] {
  if (!answer.ok) return plainText(answer);
  const json = answer.typed ? JSON.stringify(answer.value) : undefined;
  const parts = answer.blocks?.parts as OpenAiContentPart[] | undefined;
  if (parts === undefined) return json ?? answer.text;
  return json === undefined ? parts : [MEDIA.text(json), ...parts];
}

/** The event that answers one call. A `response.create` has to follow the last one. */
export interface OpenAiRealtimeEvent {
  type: "conversation.item.create";
  item: { type: "function_call_output"; call_id: string; output: string };
}

// Stream

/** The key of an item is its index, since some servers give it another id in each event. */
function keyOf(event: JsonRecord): string {
  const index = event["output_index"];
  return typeof index === "number" ? `#${index}` : String(textOf(event["item_id"]) ?? "");
}

function steps(event: JsonRecord): readonly StreamStep[] {
  const { type, item, response } = event;
  const key = keyOf(event);
  switch (type) {
    case "response.output_item.added":
      // A search has no deltas, and only the export shows whether the host runs it.
      if (!isObject(item) || !isCallItem(item) || isSearch(item)) return [];
      return [{
        type: "open",
        key,
        id: textOf(item["call_id"]),
        name: textOf(item["name"]),
        start: item,
      }];
    case "response.function_call_arguments.delta":
      return [{ type: "text", key, text: textOf(event["delta"]) ?? "" }];
    case "response.function_call_arguments.done":
      return typeof event["arguments"] === "string"
        ? [{ type: "input", key, text: event["arguments"] }]
        : [];
    case "response.output_item.done":
      // The finished item replaces what its deltas said.
      return isObject(item) && isCallItem(item) ? [{ type: "whole", key, raw: item }] : [];
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
    case "response.done":
      return [
        ...(isObject(response) ? outputSteps(response["output"]) : []),
        { type: "finish", cutOff: !isComplete(type, response) },
      ];
    default:
      return [];
  }
}

/** Calls in the last event, which has all items: their own events may have been missed. */
function outputSteps(output: unknown): readonly StreamStep[] {
  if (!Array.isArray(output)) return [];
  return output.flatMap((item: unknown, index): readonly StreamStep[] =>
    isObject(item) && isCallItem(item) ? [{ type: "whole", key: `#${index}`, raw: item }] : []
  );
}

function isComplete(type: unknown, response: unknown): boolean {
  if (type !== "response.done") return type === "response.completed";
  return !isObject(response) || (response["status"] ?? "completed") === "completed";
}

function rebuild(parts: StreamedParts): unknown {
  const call = streamedCall(CALL, parts, parts.text, { type: "function_call" });
  return { ...call, status: "completed" };
}

const stream = (): StreamFormat => ({ steps, rebuild });

// The provider

type ResponsesTarget<Id extends string> =
  & Target<
    Id,
    ResponsesWire,
    OpenAiResponsesTool[],
    OpenAiResponsesOutput,
    OpenAiResponsesOutput
  >
  & Chooses<typeof choose>;

const OPENAI_RESPONSES: ResponsesTarget<"openai.responses"> = makeTarget({
  id: "openai.responses",
  choose,
  title: "OpenAI Responses",
  source: "openai 7.55.0, openai-openapi 2.3.0, tool-search guide; 2026-11-20",
  namespaces: { names: OPENAI_NAME_RULE, tools: { ...OPENAI_NAME_RULE, max: 128 } },
  features: features(FEATURES),
  extra: { source: "openai", surface: "responses" },
  input: OPENAI_RULES,
  // The model reads text results by `output_schema`.
  output: { keywords: READ_BY_THE_MODEL, root: "any" },
  toolSearch: "definitions",
  limits: [{ name: "maxTools", value: 128, uncertain: true }],
  combinations: COMBINATIONS,
  strictMode: "openai.responses.strict",
  wire,
  assemble,
  calls: {
    read: itemReader("an OpenAI Responses response"),
    write(call, answer) {
      const raw = isObject(call.raw) ? call.raw : {};
      if (isSearch(raw)) {
        return {
          type: "tool_search_output",
          call_id: call.callId,
          execution: "client",
          status: answer.ok ? "completed" : "incomplete",
          // The export wrote them, and searches find no search.
          tools: (answer.ok ? answer.found ?? [] : []) as OpenAiResponsesFunction[],
        };
      }
      return {
        type: raw["type"] === "custom_tool_call"
          ? "custom_tool_call_output"
          : "function_call_output",
        call_id: call.callId,
        output: outputOf(answer),
        // It is repeated unchanged, so that unknown kinds work, too.
        ...(isObject(raw["caller"]) ? { caller: raw["caller"] as unknown as OpenAiCaller } : {}),
      };
    },
    media: MEDIA,
    maxCharacters: 10_485_760,
    stream,
  },
});

const OPENAI_RESPONSES_STRICT: ResponsesTarget<"openai.responses.strict"> = makeTarget({
  ...OPENAI_RESPONSES,
  id: "openai.responses.strict",
  title: "OpenAI Responses, strict",
  source: "structured-outputs guide, openai 7.55.0 lib/transform, API errors; 2026-11-20",
  input: OPENAI_STRICT_RULES,
  formats: OPENAI_FORMATS,
  limits: [...OPENAI_RESPONSES.limits, ...OPENAI_STRICT_LIMITS],
  fallback: "openai.responses",
});

/** The `tools` of a `session.update`. There is no strict mode. */
const OPENAI_REALTIME:
  & ListTarget<"openai.realtime", OpenAiRealtimeTool, OpenAiRealtimeEvent>
  & Chooses<typeof choose> = makeTarget({
    id: "openai.realtime",
    choose,
    title: "OpenAI Realtime",
    source: "openai 7.55.0; 2026-11-20",
    extra: { source: "openai", surface: "realtime" },
    input: OPENAI_RULES,
    limits: [{ name: "maxTools", value: 128, uncertain: true }],
    wire: functionItem,
    calls: {
      read: itemReader("an OpenAI Realtime response"),
      write: (call, answer) => ({
        type: "conversation.item.create",
        item: { type: "function_call_output", call_id: call.callId, output: plainText(answer) },
      }),
      stream,
    },
  });

/** The targets of Responses and Realtime. */
export const openaiResponses: Provider<
  typeof OPENAI_RESPONSES | typeof OPENAI_RESPONSES_STRICT | typeof OPENAI_REALTIME
> = { targets: [OPENAI_RESPONSES, OPENAI_RESPONSES_STRICT, OPENAI_REALTIME] };
