/** Anthropic Messages, and its strict mode. */

import { clip, defined, isObject } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import type { NameRule } from "../../select/mod.ts";
import type { ProviderHints } from "../provider_hints.ts";
import { OPENAI_FORMATS } from "./openai.ts";

// Tools

/** An allowed caller: the model, or a version of the code execution tool. */
export type AnthropicCaller =
  | "direct"
  | "code_execution_20250825"
  | "code_execution_20260120"
  | "code_execution_20260521";

/** A tool in the `tools` of a Messages request. */
export interface AnthropicTool {
  name: string;
  description?: string;
  input_schema: kit.ObjectSchema;
  strict?: boolean;
  input_examples?: { [key: string]: unknown }[];
  defer_loading?: boolean;
  allowed_callers?: AnthropicCaller[];
  cache_control?: { type: "ephemeral"; ttl?: "5m" | "1h" };
  eager_input_streaming?: boolean;
}

/** The legal property keys. */
export const ANTHROPIC_KEYS: NameRule = { also: ".-", max: 64, separator: "_" };

/** Without strict mode: text for the model, in valid 2020-12 with a plain object at the root. */
export const ANTHROPIC_RULES: kit.KeywordTable = Object.freeze({
  ...kit.READ_BY_THE_MODEL,
  ...kit.replacing("root composition", "odd property key"),
  "$ref external": kit.REJECTED,
});

/** The values of `format` in strict mode. */
export const ANTHROPIC_FORMATS: readonly string[] = [...OPENAI_FORMATS, "uri"];

function callerOf(name: string): AnthropicCaller {
  // `programmatic` is OpenAI's name for calls from code.
  return (name === "programmatic" ? "code_execution_20260120" : name) as AnthropicCaller;
}

/** The settings of a Messages request. */
export interface AnthropicRequest {
  tool_choice?:
    | { type: "auto" | "any"; disable_parallel_tool_use?: boolean }
    | { type: "tool"; name: string; disable_parallel_tool_use?: boolean }
    | { type: "none" };
}

const CALL: kit.CallFields = { id: "id", name: "name", input: "input" };

const IMAGES = ["jpeg", "png", "gif", "webp"] as const;

/** A part of a result. */
export type AnthropicContentBlock =
  | { type: "text"; text: string }
  | {
    type: "image";
    source: { type: "base64"; media_type: `image/${(typeof IMAGES)[number]}`; data: string };
  }
  | {
    type: "document";
    source: { type: "base64"; media_type: "application/pdf"; data: string };
    title?: string;
  };

/** The block that answers one call. */
export interface AnthropicToolResult {
  type: "tool_result";
  tool_use_id: string;
  content: string | { type: "tool_reference"; tool_name: string }[] | AnthropicContentBlock[];
  is_error?: true;
}

function contentOf(answer: kit.Answer): AnthropicToolResult["content"] {
  // The tools that a search has found, in the form of the export.
  const found = (answer.ok ? answer.found ?? [] : []) as readonly AnthropicTool[];
  if (answer.ok && answer.blocks?.parts !== undefined) {
    return answer.blocks.parts as AnthropicContentBlock[];
  }
  return found.length === 0
    ? answer.text
    : found.map(({ name }) => ({ type: "tool_reference", tool_name: name }));
}

function steps(event: kit.JsonRecord): readonly kit.StreamStep[] {
  const key = String(event["index"]);
  const { content_block: block, delta } = event;
  switch (event["type"]) {
    case "content_block_start":
      if (!isObject(block) || block["type"] !== "tool_use") return [];
      return [
        kit.openStep(key, CALL, block, block),
        // A block that begins with the whole input has no deltas.
        ...(isObject(block["input"]) && Object.keys(block["input"]).length > 0
          ? [{ type: "input", key, text: JSON.stringify(block["input"]) } as const]
          : []),
      ];
    case "content_block_delta":
      // Other types of delta belong to other types of block.
      return isObject(delta) && delta["type"] === "input_json_delta"
        ? [{ type: "text", key, text: kit.textOf(delta["partial_json"]) ?? "" }]
        : [];
    case "content_block_stop":
      return [{ type: "close", key }];
    case "message_delta":
      return kit.finishSteps(kit.member(delta, "stop_reason"));
    case "message_stop":
      return [{ type: "finish", cutOff: false }];
    default:
      return [];
  }
}

// Import

const TOOL: kit.ToolFields = {
  parameters: "input_schema",
  hints: ["strict", "defer_loading", "allowed_callers", "eager_input_streaming"],
  others: ["type", "input_examples", "cache_control"],
};

function readEntry(
  session: kit.ImportSession,
  tool: kit.JsonRecord,
  path: string,
  namespace: string | undefined,
): void {
  const { type = "custom", cache_control: cache } = tool;
  if (type !== "custom") {
    const why = "the provider runs it, and it has no schema";
    const message = `Cannot import a tool whose type is ${kit.quote(type)}: ${why}`;
    return session.reject(kit.textIn(tool, "name"), path, "type", message);
  }
  kit.readTool(session, tool, { path, namespace }, TOOL, (imported) => {
    const examples = kit.listIn(tool, "input_examples");
    if (examples !== undefined) imported.examples = examples.map((input) => ({ input }));
    if (cache === undefined || cache === null) return;
    const cacheControl = kit.member(cache, "type") === "ephemeral"
      ? cacheFor(kit.member(cache, "ttl"))
      : undefined;
    if (cacheControl !== undefined) imported.provider.cacheControl = cacheControl;
    else {
      const of = `The cache_control of "${clip(imported.sourceName)}"`;
      const message = `${of} is unknown, and is omitted`;
      session.warn(imported, `${path}/cache_control`, "cache_control", message);
    }
  });
}

/** Returns the cache hint with a time to live, or `undefined` for an unknown time to live. */
export function cacheFor(ttl: unknown): ProviderHints["cacheControl"] {
  if (ttl === undefined) return { type: "ephemeral" };
  return ttl === "5m" || ttl === "1h" ? { type: "ephemeral", ttl } : undefined;
}

type AnthropicTarget<Id extends string> = kit.ListTarget<
  Id,
  AnthropicTool,
  AnthropicToolResult,
  AnthropicRequest,
  { role: "user"; content: AnthropicToolResult[] }
>;

/** Anthropic Messages. */
export const ANTHROPIC: AnthropicTarget<"anthropic"> = /* @__PURE__ */ kit.makeTarget({
  id: "anthropic",
  title: "Anthropic Messages",
  source: "@anthropic-ai/sdk 1.11.0, define-tools page of 2026-09-26, API errors; 2026-11-20",
  names: { also: "-", max: 128, separator: "__" },
  keys: ANTHROPIC_KEYS,
  features: [
    "examples",
    "strict",
    "deferLoading",
    "allowedCallers",
    "cacheControl",
    "eagerInputStreaming",
  ],
  extra: { source: "anthropic" },
  input: ANTHROPIC_RULES,
  limits: [
    { name: "maxDeferredTools", value: 10_000 },
    { name: "minLoadedTools", value: 1 },
    // The API allows 4 MB of rendered text, which is about the length of the JSON.
    { name: "maxToolText", value: 4_194_304, uncertain: true },
  ],
  toolSearch: "references",
  combinations: [
    {
      name: "deferLoading",
      message: "a request with deferred tools needs a tool search tool that is not deferred",
      effect: "warn",
      applies: (hints) => hints.deferLoading === true,
    },
    {
      name: "allowedCallers",
      message: "strict mode and calls from code do not go together",
      effect: "not strict",
      applies: (hints) => hints.allowedCallers?.some((caller) => caller !== "direct") === true,
    },
  ],
  strictMode: () => ANTHROPIC_STRICT,
  wire(view) {
    const { deferLoading, allowedCallers, cacheControl, eagerInputStreaming } = view.hints;
    return {
      ...view.extra,
      name: view.name,
      ...kit.descriptionOf(view),
      input_schema: view.parameters,
      ...defined({
        strict: view.strict || undefined,
        input_examples: kit.unlessEmpty(view.examples.map(({ input }) => input)),
        defer_loading: deferLoading,
        allowed_callers: allowedCallers?.map(callerOf),
        cache_control: cacheControl && { ...cacheControl },
        eager_input_streaming: eagerInputStreaming,
      }),
    };
  },
  choose({ toolChoice, parallel }) {
    // Several calls in one response are the default, and `none` allows no call.
    const one = parallel === false ? { disable_parallel_tool_use: true } : {};
    if (toolChoice === "none") return { tool_choice: { type: "none" } };
    if (typeof toolChoice === "object") {
      return { tool_choice: { type: "tool", name: toolChoice.name, ...one } };
    }
    if (toolChoice === undefined && parallel !== false) return {};
    return { tool_choice: { type: toolChoice === "required" ? "any" : "auto", ...one } };
  },
  calls: {
    // Reads a message, the content of a message, or one `tool_use` block.
    read: kit.callReader({
      title: "an Anthropic message",
      lists: ["content"],
      reasonOf: (message) => message["stop_reason"],
      isCall: (block) => block["type"] === "tool_use",
      call: (block) => kit.callFrom(CALL, block),
    }),
    write: (call, answer) => ({
      type: "tool_result",
      tool_use_id: call.callId,
      content: contentOf(answer),
      ...(answer.ok ? {} : { is_error: true }),
    }),
    gather: (parts) => [{ role: "user", content: [...parts] }],
    media: {
      // Calls from the code execution tool accept only texts.
      takes: ({ raw }) => (kit.member(kit.member(raw, "caller"), "type") ?? "direct") === "direct",
      text: (text) => ({ type: "text", text }),
      file({ mimeType, data, name }) {
        const isImage = kit.extensionIn(IMAGES, mimeType) !== undefined;
        if (!isImage && mimeType !== "application/pdf") return undefined;
        const source = { type: "base64", media_type: mimeType, data };
        return isImage
          ? { type: "image", source }
          : { type: "document", source, ...defined({ title: name }) };
      },
    },
    stream: () => ({
      steps,
      rebuild: (parts) =>
        kit.streamedCall(CALL, parts, kit.parsed(parts.text), { type: "tool_use" }),
    }),
  },
});

/** Anthropic Messages in strict mode. */
export const ANTHROPIC_STRICT: AnthropicTarget<"anthropic.strict"> = /* @__PURE__ */ kit.makeTarget(
  {
    ...ANTHROPIC,
    id: "anthropic.strict",
    title: "Anthropic Messages, strict",
    source: "structured-outputs page, @anthropic-ai/sdk 1.11.0; 2026-11-20",
    input: kit.ANTHROPIC_STRICT_RULES,
    formats: ANTHROPIC_FORMATS,
    limits: [
      ...ANTHROPIC.limits,
      { name: "maxStrictTools", value: 20 },
      { name: "maxOptional", value: 24 },
      { name: "maxUnions", value: 16 },
    ],
    fallback: ANTHROPIC,
  },
);

/** Reads the tools of a request to Anthropic. */
export const anthropicImporter: kit.Importer<"anthropic"> = {
  source: "anthropic",
  detects: (document) =>
    kit.entriesOf(document, ["tools"], []).some(({ value }) =>
      kit.member(value, "input_schema") !== undefined
    ),
  read(session, document, options) {
    kit.readEach(session, kit.entriesOf(document, ["tools"], [], session), (tool, path) => {
      readEntry(session, tool, path, options.namespace);
    });
  },
};
