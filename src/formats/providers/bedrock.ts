/** AWS Bedrock Converse, and its strict mode. */

import { defined, isObject } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import { ANTHROPIC_FORMATS, ANTHROPIC_KEYS, ANTHROPIC_RULES, cacheFor } from "./anthropic.ts";

// Tools

/** A tool in `toolConfig.tools`. */
export interface BedrockTool {
  toolSpec: {
    name: string;
    description?: string;
    inputSchema: { json: { [keyword: string]: kit.WireValue } };
    strict?: boolean;
  };
  cachePoint?: never;
}

/** An entry of `toolConfig.tools` that caches the tools before it. */
export interface BedrockCachePoint {
  cachePoint: { type: "default"; ttl?: "5m" | "1h" };
  toolSpec?: never;
}

/** The settings of a request, in its `toolConfig`. */
export interface BedrockRequest {
  toolChoice?:
    | { auto: Record<never, never> }
    | { any: Record<never, never> }
    | { tool: { name: string } };
}

const CALL: kit.CallFields = { id: "toolUseId", name: "name", input: "input" };

/** The block that answers one call. */
export interface BedrockToolResult {
  toolResult: {
    toolUseId: string;
    content: ({ json: { [key: string]: kit.WireValue } } | BedrockContentBlock)[];
    status: "success" | "error";
  };
}

const IMAGES = ["gif", "jpeg", "png", "webp"] as const;
const DOCUMENTS = ["csv", "doc", "docx", "html", "md", "pdf", "txt", "xls", "xlsx"] as const;
const VIDEOS = ["flv", "mkv", "mov", "mp4", "mpeg", "three_gp", "webm", "wmv"] as const;

/** Bytes that `JSON.stringify` writes as base64, as in the REST API. */
export interface BedrockBytes {
  bytes: Uint8Array;
}

/** A part of a result. */
export type BedrockContentBlock =
  | { text: string }
  | { image: { format: (typeof IMAGES)[number]; source: BedrockBytes } }
  | { document: { format: (typeof DOCUMENTS)[number]; name: string; source: BedrockBytes } }
  | { video: { format: (typeof VIDEOS)[number]; source: BedrockBytes } };

function bytesOf({ data }: kit.MediaFile): BedrockBytes {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  Object.defineProperty(bytes, "toJSON", { value: () => data });
  return { bytes };
}

/** Returns a legal name that is unique among the documents of the conversation. */
function nameOf({ name = "" }: kit.MediaFile, id: string): string {
  const plain = (text: string): string =>
    text.replace(/[^A-Za-z0-9 ()[\]-]+/g, " ").replace(/ +/g, " ").trim().slice(0, 90);
  return `${plain(name) || "document"} (${plain(id.replace(/_/g, "-"))})`;
}

function contentOf(answer: kit.Answer): BedrockToolResult["toolResult"]["content"] {
  if (!answer.ok || answer.blocks !== undefined || !isObject(answer.value)) {
    const parts = answer.ok ? answer.blocks?.parts : undefined;
    return parts as BedrockContentBlock[] | undefined ?? [{ text: answer.text || "(empty)" }];
  }
  // `json` accepts objects only. The type is mutable, but the SDK does not change the value.
  return [{ json: answer.value as { [key: string]: kit.WireValue } }];
}

function steps(event: kit.JsonRecord): readonly kit.StreamStep[] {
  const { contentBlockStart: start, contentBlockDelta: delta, contentBlockStop: stop } = event;
  const block = start ?? delta ?? stop;
  const key = String(kit.member(block, "contentBlockIndex"));
  if (isObject(start)) {
    const use = kit.objectIn(start["start"], "toolUse");
    if (use === undefined || use["type"] === "server_tool_use") return [];
    return [kit.openStep(key, CALL, use)];
  }
  if (isObject(delta)) {
    const use = kit.objectIn(delta["delta"], "toolUse");
    return use === undefined ? [] : [{ type: "text", key, text: kit.textIn(use, "input") ?? "" }];
  }
  if (isObject(stop)) return [{ type: "close", key }];
  return kit.finishSteps(kit.member(event["messageStop"], "stopReason"));
}

// Import

const TOOL: kit.ToolFields = { parameters: "inputSchema/json", hints: ["strict"] };

/** Reads a cache point, which covers the tools before it, as a hint of the last of these tools. */
function readCachePoint(
  session: kit.ImportSession,
  last: kit.ImportedTool | undefined,
  cachePoint: kit.JsonRecord,
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
  session: kit.ImportSession,
  entry: kit.JsonRecord,
  path: string,
  namespace: string | undefined,
): kit.ImportedTool | undefined {
  const tool = kit.objectIn(entry, "toolSpec");
  if (tool === undefined) {
    const message = 'Cannot import the entry: only a "toolSpec" has a schema of its arguments';
    session.reject(kit.textIn(entry["systemTool"], "name"), path, "type", message);
    return undefined;
  }
  const at = `${path}/toolSpec`;
  return kit.readTool(session, tool, { path, at, namespace }, TOOL);
}

type BedrockTarget<Id extends string> = kit.Target<
  Id,
  BedrockTool,
  (BedrockTool | BedrockCachePoint)[],
  BedrockToolResult,
  { role: "user"; content: BedrockToolResult[] },
  BedrockRequest
>;

/** AWS Bedrock Converse. */
export const BEDROCK: BedrockTarget<"bedrock"> = /* @__PURE__ */ kit.makeTarget({
  id: "bedrock",
  title: "AWS Bedrock Converse",
  source: "@aws-sdk/client-bedrock-runtime 3.1162.0, API_runtime_ToolSpecification; 2026-11-20",
  keys: ANTHROPIC_KEYS,
  features: ["strict", "cacheControl"],
  extra: { source: "bedrock" },
  // The rules depend on the model. Claude's rules are the strictest that are known.
  input: {
    ...ANTHROPIC_RULES,
    "root composition": kit.unsure(kit.replaced("root composition")),
    "odd property key": kit.unsure(kit.replaced("odd property key")),
  },
  strictMode: () => BEDROCK_STRICT,
  wire: (view) => ({
    toolSpec: {
      ...view.extra,
      name: view.name,
      ...kit.descriptionOf(view),
      inputSchema: { json: view.parameters as { [keyword: string]: kit.WireValue } },
      ...(view.strict ? { strict: true } : {}),
    },
  }),
  // A cache point follows each tool with the hint `cacheControl`.
  assemble: (tools) =>
    tools.flatMap(({ view: { hints: { cacheControl } }, wire }) => {
      if (cacheControl === undefined) return [wire];
      const { ttl } = cacheControl;
      return [wire, { cachePoint: { type: "default", ...defined({ ttl }) } }];
    }),
  choose({ toolChoice, parallel }, lose) {
    kit.loseParallel(parallel, lose);
    if (toolChoice === "none") {
      lose("toolChoice", "a request cannot forbid calls; send it without toolConfig");
    }
    if (toolChoice === undefined || toolChoice === "none") return {};
    if (typeof toolChoice === "object") return { toolChoice: { tool: { name: toolChoice.name } } };
    return { toolChoice: toolChoice === "auto" ? { auto: {} } : { any: {} } };
  },
  calls: {
    // Reads a response, a message, the content of a message, or one `toolUse` block.
    read: kit.callReader({
      title: "a Bedrock Converse response",
      messages: ["output/message", "message"],
      lists: ["content"],
      reasonOf: (response) => response["stopReason"],
      // AWS runs the calls of server tools.
      isCall: (block) =>
        kit.isSet(block, "toolUse") && kit.textIn(block["toolUse"], "type") !== "server_tool_use",
      call(block, at, shape) {
        const use = shape.record(block["toolUse"], `${at}/toolUse`);
        return { ...kit.callFrom(CALL, use), raw: block };
      },
    }),
    write: ({ callId }, answer) => ({
      toolResult: {
        toolUseId: callId,
        content: contentOf(answer),
        status: answer.ok ? "success" : "error",
      },
    }),
    gather: (parts) => [{ role: "user", content: [...parts] }],
    media: {
      text: (text) => ({ text }),
      file(file, id): BedrockContentBlock | undefined {
        const source = bytesOf(file);
        const image = kit.extensionIn(IMAGES, file.mimeType);
        if (image !== undefined) return { image: { format: image, source } };
        const video = kit.extensionIn(VIDEOS, file.mimeType);
        if (video !== undefined) return { video: { format: video, source } };
        const format = kit.extensionIn(DOCUMENTS, file.mimeType);
        return format && { document: { format, name: nameOf(file, id), source } };
      },
    },
    stream: () => ({
      steps,
      rebuild: (parts) => ({ toolUse: kit.streamedCall(CALL, parts, kit.parsed(parts.text)) }),
    }),
  },
});

/** AWS Bedrock Converse in strict mode. */
export const BEDROCK_STRICT: BedrockTarget<"bedrock.strict"> = /* @__PURE__ */ kit.makeTarget({
  ...BEDROCK,
  id: "bedrock.strict",
  title: "AWS Bedrock Converse, strict",
  source: "structured-output page of the Bedrock guide; 2026-11-20",
  input: kit.ANTHROPIC_STRICT_RULES,
  formats: ANTHROPIC_FORMATS,
  fallback: BEDROCK,
});

/** Reads the tools of a request to Bedrock. */
export const bedrockImporter: kit.Importer<"bedrock"> = {
  source: "bedrock",
  detects: (document) =>
    kit.entriesOf(document, ["tools"], ["toolConfig"]).some(({ value }) =>
      kit.member(value, "toolSpec") !== undefined
    ),
  read(session, document, options) {
    let last: kit.ImportedTool | undefined;
    const entries = kit.entriesOf(document, ["tools"], ["toolConfig"], session);
    kit.readEach(session, entries, (entry, path) => {
      if (isObject(entry["cachePoint"])) readCachePoint(session, last, entry["cachePoint"], path);
      else last = readEntry(session, entry, path, options.namespace) ?? last;
    });
  },
};
