/** OpenAI Responses and its strict mode, and Realtime, which has the same output items. */

import { OPENAI_NAME_RULE } from "../../select/mod.ts";
import { defined, isObject, once } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import { OPENAI_FORMATS, OPENAI_STRICT_LIMITS } from "./openai.ts";
import { CUSTOM_TOOL } from "./openai_chat.ts";

// Tools

/** A function in the `tools` of a Responses request, or inside a namespace. */
export interface OpenAiResponsesFunction extends OpenAiRealtimeTool {
  /** Required, because the API tries strict mode if the field is absent. */
  strict: boolean;
  output_schema?: kit.WireSchema;
  defer_loading?: boolean;
  allowed_callers?: ("direct" | "programmatic")[];
  async?: boolean;
}

/** A namespace of functions. */
export interface OpenAiResponsesNamespace {
  type: "namespace";
  name: string;
  description: string;
  tools: OpenAiResponsesFunction[];
}

/** A tool search that the host runs, for gpt-5.4 and later models. */
export interface OpenAiResponsesToolSearch {
  type: "tool_search";
  execution: "client";
  description: string;
  parameters: kit.WireSchema;
}

/** An entry of the `tools` of a Responses request. */
export type OpenAiResponsesTool =
  | OpenAiResponsesFunction
  | OpenAiResponsesNamespace
  | OpenAiResponsesToolSearch;

type ResponsesWire = OpenAiResponsesFunction | OpenAiResponsesToolSearch;

/** A function in the `tools` of a session. */
export interface OpenAiRealtimeTool {
  type: "function";
  name: string;
  description?: string;
  parameters: kit.WireSchema;
}

function functionItem(view: kit.ToolView): OpenAiRealtimeTool {
  return {
    ...view.extra,
    type: "function",
    name: view.name,
    ...kit.descriptionOf(view),
    parameters: view.parameters,
  };
}

/** Returns the names of callers in this API, in which calls from code are `programmatic`. */
function callers(names: readonly string[]): ("direct" | "programmatic")[] {
  return [...new Set(names.map((name) => name === "direct" ? "direct" : "programmatic"))];
}

function assemble(
  tools: readonly { readonly view: kit.ToolView; readonly wire: ResponsesWire }[],
): OpenAiResponsesTool[] {
  const list: OpenAiResponsesTool[] = [];
  const namespaces = new Map<string, OpenAiResponsesNamespace>();
  for (const { view: { namespace: name, tool }, wire } of tools) {
    if (name === undefined || wire.type === "tool_search") {
      list.push(wire);
      continue;
    }
    once(namespaces, name, () => {
      const views = tools.map(({ view }) => view).filter(({ namespace }) => namespace === name);
      const described = views.find(({ hints }) => hints.namespaceDescription !== undefined);
      // The API requires a description.
      const description = described?.hints.namespaceDescription ?? `Tools of "${tool.namespace}".`;
      const namespace: OpenAiResponsesNamespace = {
        type: "namespace",
        name,
        description,
        tools: [],
      };
      list.push(namespace);
      return namespace;
    }).tools.push(wire);
  }
  return list;
}

/** The settings of a Responses request, and of a session. */
export interface OpenAiResponsesRequest {
  tool_choice?: "auto" | "none" | "required" | { type: "function"; name: string };
  parallel_tool_calls?: boolean;
}

function choose(
  { toolChoice, parallel }: kit.WireSettings,
  lose: kit.LoseSetting,
): OpenAiResponsesRequest {
  const isNamed = typeof toolChoice === "object";
  const isInNamespace = isNamed && toolChoice.namespace !== undefined;
  if (isInNamespace) {
    const message =
      "a request cannot choose a tool in a namespace, so the model must call any tool; " +
      "export with namespaces: false";
    lose("toolChoice", message);
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

const CALL: kit.CallFields = { id: "call_id", name: "name", input: "arguments" };
const CUSTOM_CALL: kit.CallFields = { ...CALL, input: "input" };

/** Creates a function that reads a response, a list of items, an item, or an event with these. */
function itemReader(title: string): (response: unknown) => readonly kit.WireCall[] {
  const read = kit.callReader({
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
    kit.textIn(response, "type") === "response.function_call_arguments.done"
      ? read({ ...Object(response), type: "function_call" })
      : read(response);
}

/** Returns true if an item is a call that the host runs. */
function isCallItem(item: kit.JsonRecord): boolean {
  return item["type"] === "function_call" || item["type"] === "custom_tool_call" ||
    isSearch(item);
}

function isSearch({ type, execution }: kit.JsonRecord): boolean {
  return type === "tool_search_call" && execution === "client";
}

function callOf(raw: kit.JsonRecord): kit.WireCall {
  const custom = raw["type"] === "custom_tool_call";
  const call = kit.callFrom(custom ? CUSTOM_CALL : CALL, raw);
  return {
    ...(isSearch(raw) ? { input: call.input, raw, name: "tool_search", searches: true } : call),
    id: call.id ?? kit.textOf(raw["id"]),
    namespace: kit.textOf(raw["namespace"]),
    // Some servers omit the status of items. Then the status of the response decides.
    ...(kit.isSet(raw, "status") ? { cutOff: raw["status"] === "incomplete" } : {}),
    ...(custom ? { refusal: CUSTOM_TOOL } : {}),
  };
}

/** The caller of a tool: the model, or a program of the model. */
export type OpenAiCaller = { type: "direct" } | { type: "program"; caller_id: string };

/** The item that answers one call. */
export type OpenAiResponsesOutput =
  | {
    type: "tool_search_output";
    call_id: string;
    execution: "client";
    /** `incomplete` if the search failed. */
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

const IMAGES = ["png", "jpeg", "gif", "webp"] as const;

const DOCUMENTS = "csv doc docx html json md odt pdf ppt pptx rtf txt xls xlsx xml".split(" ");

function textPart(text: string): OpenAiContentPart {
  return { type: "input_text", text };
}

/** Programs of the model parse an output with a schema as JSON, so a text is sent as JSON. */
function outputOf(answer: kit.Answer): string | OpenAiContentPart[] {
  if (!answer.ok) return kit.plainText(answer);
  const json = answer.typed ? JSON.stringify(answer.value) : undefined;
  const parts = answer.blocks?.parts as OpenAiContentPart[] | undefined;
  if (parts === undefined) return json ?? answer.text;
  return json === undefined ? parts : [textPart(json), ...parts];
}

/** The event that answers one call. Send `response.create` after the last such event. */
export interface OpenAiRealtimeEvent {
  type: "conversation.item.create";
  item: { type: "function_call_output"; call_id: string; output: string };
}

/** Identifies an item by its index, because some servers use another id in each event. */
function keyOf(event: kit.JsonRecord): string {
  const index = event["output_index"];
  return typeof index === "number" ? `#${index}` : String(kit.textOf(event["item_id"]) ?? "");
}

function steps(event: kit.JsonRecord): readonly kit.StreamStep[] {
  const { type, item, response } = event;
  const key = keyOf(event);
  switch (type) {
    case "response.output_item.added":
      // A search has no deltas.
      if (!isObject(item) || !isCallItem(item) || isSearch(item)) return [];
      return [kit.openStep(key, CALL, item, item)];
    case "response.function_call_arguments.delta":
      return [{ type: "text", key, text: kit.textOf(event["delta"]) ?? "" }];
    case "response.function_call_arguments.done":
      return typeof event["arguments"] === "string"
        ? [{ type: "input", key, text: event["arguments"] }]
        : [];
    case "response.output_item.done":
      // The finished item replaces its deltas.
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

/** Reads the items of the last event, because the events of some items may have been missed. */
function outputSteps(output: unknown): readonly kit.StreamStep[] {
  if (!Array.isArray(output)) return [];
  return output.flatMap((item: unknown, index): readonly kit.StreamStep[] =>
    isObject(item) && isCallItem(item) ? [{ type: "whole", key: `#${index}`, raw: item }] : []
  );
}

function isComplete(type: unknown, response: unknown): boolean {
  if (type !== "response.done") return type === "response.completed";
  return !isObject(response) || (response["status"] ?? "completed") === "completed";
}

const stream = (): kit.StreamFormat => ({
  steps,
  rebuild(parts) {
    const call = kit.streamedCall(CALL, parts, parts.text, { type: "function_call" });
    return { ...call, status: "completed" };
  },
});

type ResponsesTarget<Id extends string> = kit.Target<
  Id,
  ResponsesWire,
  OpenAiResponsesTool[],
  OpenAiResponsesOutput,
  OpenAiResponsesOutput,
  OpenAiResponsesRequest
>;

/** OpenAI Responses. */
export const OPENAI_RESPONSES: ResponsesTarget<"openai.responses"> = /* @__PURE__ */ kit.makeTarget(
  {
    id: "openai.responses",
    title: "OpenAI Responses",
    source: "openai 7.55.0, openai-openapi 2.3.0, tool-search guide; 2026-11-20",
    namespaces: { names: OPENAI_NAME_RULE, tools: { ...OPENAI_NAME_RULE, max: 128 } },
    features: ["namespace", "returns", "strict", "deferLoading", "allowedCallers", "async"],
    extra: { source: "openai", surface: "responses" },
    input: kit.OPENAI_RULES,
    // The model interprets text results by `output_schema`.
    output: { keywords: kit.READ_BY_THE_MODEL, root: "any" },
    toolSearch: "definitions",
    limits: [{ name: "maxTools", value: 128, uncertain: true }],
    combinations: [
      {
        name: "deferLoading",
        message:
          'deferred tools need { type: "tool_search" } among the tools, and gpt-5.4 or later',
        effect: "warn",
        applies: (hints) => hints.deferLoading === true,
      },
      {
        name: "allowedCallers",
        message: 'calls from code need { type: "programmatic_tool_calling" } among the tools',
        effect: "warn",
        applies: (hints) => hints.allowedCallers?.some((caller) => caller !== "direct") === true,
      },
      {
        name: "allowedCallers empty",
        message:
          "an empty list of callers is rejected; it is omitted, and the model may call the tool",
        effect: "warn",
        applies: (hints) => hints.allowedCallers?.length === 0,
      },
    ],
    strictMode: () => OPENAI_RESPONSES_STRICT,
    wire(view) {
      const { deferLoading, allowedCallers = [], async, toolSearch } = view.hints;
      const { description, parameters, returns, strict } = view;
      if (toolSearch === true) {
        const copy = { ...parameters };
        return { type: "tool_search", execution: "client", description, parameters: copy };
      }
      return {
        ...functionItem(view),
        strict,
        ...defined({
          output_schema: returns === undefined ? undefined : kit.asObject(returns),
          defer_loading: deferLoading,
          allowed_callers: kit.unlessEmpty(callers(allowedCallers)),
          async,
        }),
      };
    },
    assemble,
    choose,
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
            // The export created these entries. Searches are never deferred, so no entry is a search.
            tools: (answer.ok ? answer.found ?? [] : []) as OpenAiResponsesFunction[],
          };
        }
        return {
          type: raw["type"] === "custom_tool_call"
            ? "custom_tool_call_output"
            : "function_call_output",
          call_id: call.callId,
          output: outputOf(answer),
          // The caller is repeated unchanged, so that unknown kinds of callers work, too.
          ...(isObject(raw["caller"]) ? { caller: raw["caller"] as unknown as OpenAiCaller } : {}),
        };
      },
      media: {
        text: textPart,
        file({ mimeType, data, name }): OpenAiContentPart | undefined {
          const url = `data:${mimeType};base64,${data}`;
          const isImage = kit.extensionIn(IMAGES, mimeType) !== undefined;
          if (isImage) return { type: "input_image", image_url: url, detail: "auto" };
          const end = kit.extensionIn(DOCUMENTS, mimeType);
          const filename = name ?? `file.${end}`;
          return end === undefined ? undefined : { type: "input_file", filename, file_data: url };
        },
      },
      maxCharacters: 10_485_760,
      stream,
    },
  },
);

/** OpenAI Responses in strict mode. */
export const OPENAI_RESPONSES_STRICT: ResponsesTarget<"openai.responses.strict"> =
  /* @__PURE__ */ kit.makeTarget({
    ...OPENAI_RESPONSES,
    id: "openai.responses.strict",
    title: "OpenAI Responses, strict",
    source: "structured-outputs guide, openai 7.55.0 lib/transform, API errors; 2026-11-20",
    input: kit.OPENAI_STRICT_RULES,
    formats: OPENAI_FORMATS,
    limits: [...OPENAI_RESPONSES.limits, ...OPENAI_STRICT_LIMITS],
    fallback: OPENAI_RESPONSES,
  });

/** OpenAI Realtime: the `tools` of a `session.update`. */
export const OPENAI_REALTIME: kit.ListTarget<
  "openai.realtime",
  OpenAiRealtimeTool,
  OpenAiRealtimeEvent,
  OpenAiResponsesRequest
> = /* @__PURE__ */ kit.makeTarget({
  id: "openai.realtime",
  title: "OpenAI Realtime",
  source: "openai 7.55.0; 2026-11-20",
  extra: { source: "openai", surface: "realtime" },
  input: kit.OPENAI_RULES,
  limits: [{ name: "maxTools", value: 128, uncertain: true }],
  wire: functionItem,
  choose,
  calls: {
    read: itemReader("an OpenAI Realtime response"),
    write: (call, answer) => ({
      type: "conversation.item.create",
      item: { type: "function_call_output", call_id: call.callId, output: kit.plainText(answer) },
    }),
    stream,
  },
});
