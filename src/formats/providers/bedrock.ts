/**
 * AWS Bedrock Converse, and its strict mode.
 *
 * @module
 */

import { defined, isObject } from "../../tool/mod.ts";
import type { Answer, MediaFile, MediaFormat, StreamedParts, StreamStep } from "../call_format.ts";
import {
  type CallFields,
  callFrom,
  callReader,
  descriptionOf,
  given,
  isCutOff,
  parsed,
  streamedCall,
  textOf,
  type WireValue,
} from "../wire.ts";
import {
  type Chooses,
  loseParallel,
  type LoseSetting,
  type WireSettings,
} from "../export_options.ts";
import {
  entriesOf,
  type ImportedTool,
  type Importer,
  type ImportOptions,
  type ImportSession,
  type JsonRecord,
  member,
  objectIn,
  readEach,
  readTool,
  textIn,
  type ToolFields,
} from "../importer_kit.ts";
import { ANTHROPIC_STRICT_RULES, replaced, unsure } from "../form_rules.ts";
import { features, makeTarget, type Provider, type Target, type ToolView } from "../target.ts";
import { ANTHROPIC_FORMATS, ANTHROPIC_KEYS, ANTHROPIC_RULES, cacheFor } from "./anthropic.ts";

// Tools

/** A tool in `toolConfig.tools`. */
export interface BedrockTool {
  toolSpec: {
    name: string;
    description?: string;
    inputSchema: { json: { [keyword: string]: WireValue } };
    strict?: boolean;
  };
  cachePoint?: never;
}

/** An entry of `toolConfig.tools`: the tools before it are cached. */
export interface BedrockCachePoint {
  cachePoint: { type: "default"; ttl?: "5m" | "1h" };
  toolSpec?: never;
}

function wire(view: ToolView, strict: boolean | undefined): BedrockTool {
  return {
    toolSpec: {
      ...view.extra,
      name: view.name,
      ...descriptionOf(view),
      inputSchema: { json: view.parameters as { [keyword: string]: WireValue } },
      ...defined({ strict }),
    },
  };
}

/** The tools, with a cache point after each tool whose hints request one. */
function assemble(
  tools: readonly { readonly view: ToolView; readonly wire: BedrockTool }[],
): (BedrockTool | BedrockCachePoint)[] {
  return tools.flatMap(({ view, wire }) => {
    const { cacheControl } = view.hints;
    if (cacheControl === undefined) return [wire];
    const { ttl } = cacheControl;
    return [wire, { cachePoint: { type: "default", ...defined({ ttl }) } }];
  });
}

// Settings

/** The settings of a request, in its `toolConfig`. */
export interface BedrockRequest {
  toolChoice?:
    | { auto: Record<never, never> }
    | { any: Record<never, never> }
    | { tool: { name: string } };
}

function choose({ toolChoice, parallel }: WireSettings, lose: LoseSetting): BedrockRequest {
  loseParallel(parallel, lose);
  if (toolChoice === "none") {
    lose("toolChoice", "a request cannot forbid calls; send it without toolConfig");
  }
  if (toolChoice === undefined || toolChoice === "none") return {};
  if (typeof toolChoice === "object") return { toolChoice: { tool: { name: toolChoice.name } } };
  return { toolChoice: toolChoice === "auto" ? { auto: {} } : { any: {} } };
}

// Calls

const CALL: CallFields = { id: "toolUseId", name: "name", input: "input" };

/** Reads a response, a message, its content, or one `toolUse` block. */
const read = callReader({
  title: "a Bedrock Converse response",
  messages: ["output/message", "message"],
  lists: ["content"],
  reasonOf: (response) => response["stopReason"],
  // AWS runs server tools.
  isCall: (block) =>
    given(block, "toolUse") && textIn(block["toolUse"], "type") !== "server_tool_use",
  call(block, at, shape) {
    const use = shape.record(block["toolUse"], `${at}/toolUse`);
    return { ...callFrom(CALL, use), raw: block };
  },
});

// Results

/** The block that answers one call. */
export interface BedrockToolResult {
  toolResult: {
    toolUseId: string;
    content: ({ json: { [key: string]: WireValue } } | BedrockContentBlock)[];
    status: "success" | "error";
  };
}

/** The images that the API takes. */
export type BedrockImageFormat = "gif" | "jpeg" | "png" | "webp";

/** The documents that the API takes. */
export type BedrockDocumentFormat =
  | "csv"
  | "doc"
  | "docx"
  | "html"
  | "md"
  | "pdf"
  | "txt"
  | "xls"
  | "xlsx";

/** The videos that the API takes. */
export type BedrockVideoFormat =
  | "flv"
  | "mkv"
  | "mov"
  | "mp4"
  | "mpeg"
  | "three_gp"
  | "webm"
  | "wmv";

/** Bytes, which are base64 when they are written as JSON: that is how the REST API takes them. */
export interface BedrockBytes {
  bytes: Uint8Array;
}

/** A part of a result. */
export type BedrockContentBlock =
  | { text: string }
  | { image: { format: BedrockImageFormat; source: BedrockBytes } }
  | { document: { format: BedrockDocumentFormat; name: string; source: BedrockBytes } }
  | { video: { format: BedrockVideoFormat; source: BedrockBytes } };

const IMAGES: ReadonlyMap<string, BedrockImageFormat> = new Map([
  ["image/gif", "gif"],
  ["image/jpeg", "jpeg"],
  ["image/png", "png"],
  ["image/webp", "webp"],
]);

const DOCUMENTS: ReadonlyMap<string, BedrockDocumentFormat> = new Map([
  ["application/msword", "doc"],
  ["application/pdf", "pdf"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
  ["text/plain", "txt"],
]);

const VIDEOS: ReadonlyMap<string, BedrockVideoFormat> = new Map([
  ["video/3gpp", "three_gp"],
  ["video/mp4", "mp4"],
  ["video/mpeg", "mpeg"],
  ["video/quicktime", "mov"],
  ["video/webm", "webm"],
  ["video/x-flv", "flv"],
  ["video/x-matroska", "mkv"],
  ["video/x-ms-wmv", "wmv"],
]);

const MEDIA: MediaFormat<BedrockContentBlock> = {
  text: (text) => ({ text }),
  file(file, id) {
    const source = bytesOf(file);
    const image = IMAGES.get(file.mimeType);
    if (image !== undefined) return { image: { format: image, source } };
    const video = VIDEOS.get(file.mimeType);
    if (video !== undefined) return { video: { format: video, source } };
    const format = DOCUMENTS.get(file.mimeType);
    return format && { document: { format, name: nameOf(file, id), source } };
  },
};

function bytesOf({ data }: MediaFile): BedrockBytes {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  Object.defineProperty(bytes, "toJSON", { value: () => data });
  return { bytes };
}

/** A name that the API takes: no other document of the conversation may have it. */
function nameOf({ name = "" }: MediaFile, id: string): string {
  const plain = (text: string): string =>
    text.replace(/[^A-Za-z0-9 ()[\]-]+/g, " ").replace(/ +/g, " ").trim().slice(0, 90);
  return `${plain(name) || "document"} (${plain(id.replace(/_/g, "-"))})`;
}

/** The message with the answers to all calls of a response. */
export interface BedrockToolMessage {
  role: "user";
  content: BedrockToolResult[];
}

function contentOf(answer: Answer): BedrockToolResult["toolResult"]["content"] {
  if (!answer.ok || answer.blocks !== undefined || !isObject(answer.value)) {
    const parts = answer.ok ? answer.blocks?.parts : undefined;
    return parts as BedrockContentBlock[] | undefined ?? [{ text: answer.text || "(empty)" }];
  }
  // `json` takes objects only. Its type is mutable, but the SDK does not write to it.
  return [{ json: answer.value as { [key: string]: WireValue } }];
}

// Stream

function steps(event: JsonRecord): readonly StreamStep[] {
  const { contentBlockStart: start, contentBlockDelta: delta, contentBlockStop: stop } = event;
  const block = start ?? delta ?? stop;
  const key = String(member(block, "contentBlockIndex"));
  if (isObject(start)) {
    const use = objectIn(start["start"], "toolUse");
    if (use === undefined || use["type"] === "server_tool_use") return [];
    return [{ type: "open", key, id: textOf(use["toolUseId"]), name: textOf(use["name"]) }];
  }
  if (isObject(delta)) {
    const use = objectIn(delta["delta"], "toolUse");
    return use === undefined ? [] : [{ type: "text", key, text: textIn(use, "input") ?? "" }];
  }
  if (isObject(stop)) return [{ type: "close", key }];
  const { messageStop } = event;
  return isObject(messageStop)
    ? [{ type: "finish", cutOff: isCutOff(messageStop["stopReason"]) }]
    : [];
}

function rebuild(parts: StreamedParts): unknown {
  return { toolUse: streamedCall(CALL, parts, parsed(parts.text)) };
}

// Import

const TOOL: ToolFields = { parameters: "inputSchema/json", hints: ["strict"] };

/** A cache point covers the tools before it. The last of them keeps it as a hint. */
function readCachePoint(
  session: ImportSession,
  last: ImportedTool | undefined,
  cachePoint: JsonRecord,
  path: string,
): void {
  const cacheControl = cachePoint["type"] === "default" ? cacheFor(cachePoint["ttl"]) : undefined;
  if (last !== undefined && cacheControl !== undefined) {
    last.provider.cacheControl = cacheControl;
    return;
  }
  const why = last === undefined ? "follows no tool" : "is unknown";
  session.warn(undefined, path, "cachePoint", `The cache point ${why}, and is omitted`);
}

function readEntry(
  session: ImportSession,
  entry: JsonRecord,
  path: string,
  options: ImportOptions,
): ImportedTool | undefined {
  const tool = objectIn(entry, "toolSpec");
  if (tool === undefined) {
    const message = 'Cannot import the entry: only a "toolSpec" has a schema of its arguments';
    session.reject(textIn(entry["systemTool"], "name"), path, "type", message);
    return undefined;
  }
  const at = `${path}/toolSpec`;
  return readTool(session, tool, { path, at, namespace: options.namespace }, TOOL);
}

// The provider

type BedrockTarget<Id extends string> =
  & Target<
    Id,
    BedrockTool,
    (BedrockTool | BedrockCachePoint)[],
    BedrockToolResult,
    BedrockToolMessage
  >
  & Chooses<typeof choose>;

/** `toolConfig.tools`. Without a tool, omit `toolConfig`: an empty list is rejected. */
const BEDROCK: BedrockTarget<"bedrock"> = makeTarget({
  id: "bedrock",
  choose,
  title: "AWS Bedrock Converse",
  source: "@aws-sdk/client-bedrock-runtime 3.1162.0, API_runtime_ToolSpecification; 2026-11-20",
  keys: ANTHROPIC_KEYS,
  features: features(["strict", "cacheControl"]),
  extra: { source: "bedrock" },
  // The rules depend on the model. Claude's are the narrowest that are known.
  input: {
    ...ANTHROPIC_RULES,
    "root composition": unsure(replaced("root composition")),
    "odd property key": unsure(replaced("odd property key")),
  },
  combinations: [{
    name: "cacheControl",
    message: "only some models take a cache point among the tools",
    effect: "warn",
    applies: (hints) => hints.cacheControl !== undefined,
  }],
  strictMode: "bedrock.strict",
  wire: (view) => wire(view, view.strict || undefined),
  assemble,
  calls: {
    read,
    write: ({ callId }, answer) => ({
      toolResult: {
        toolUseId: callId,
        content: contentOf(answer),
        status: answer.ok ? "success" : "error",
      },
    }),
    gather: (parts) => [{ role: "user", content: [...parts] }],
    media: MEDIA,
    stream: () => ({ steps, rebuild }),
  },
});

/** The same with `strict: true`, for the models that have it. */
const BEDROCK_STRICT: BedrockTarget<"bedrock.strict"> = makeTarget({
  ...BEDROCK,
  id: "bedrock.strict",
  title: "AWS Bedrock Converse, strict",
  source: "structured-output page of the Bedrock guide; 2026-11-20",
  input: ANTHROPIC_STRICT_RULES,
  formats: ANTHROPIC_FORMATS,
  fallback: "bedrock",
  wire: (view) => wire(view, view.strict),
});

/** Bedrock's targets and importer. */
export const bedrock: Provider<typeof BEDROCK | typeof BEDROCK_STRICT, Importer<"bedrock">> = {
  targets: [BEDROCK, BEDROCK_STRICT],
  importer: {
    source: "bedrock",
    looksLike: (document) =>
      entriesOf(document, ["tools"], ["toolConfig"]).some(({ value }) =>
        member(value, "toolSpec") !== undefined
      ),
    read(session, document, options) {
      let last: ImportedTool | undefined;
      const entries = entriesOf(document, ["tools"], ["toolConfig"], session);
      readEach(session, entries, (entry, path) => {
        if (isObject(entry["cachePoint"])) readCachePoint(session, last, entry["cachePoint"], path);
        else last = readEntry(session, entry, path, options) ?? last;
      });
    },
  },
};
