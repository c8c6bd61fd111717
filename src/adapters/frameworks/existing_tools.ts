/** The common parts of tools that were written for a framework, and become tools of plue. */

import type * as check from "../../tool/mod.ts";
import { isObject, ToolResult } from "../../tool/mod.ts";

/** Options of tools that were written for a framework. */
export interface ExistingToolsOptions {
  /** The namespace of the tools. By default, their names are their ids. */
  readonly namespace?: string;
  /** The risk of all tools. @default {"medium"} */
  readonly risk?: check.RiskLevel;
}

export const OPTIONS: readonly (keyof ExistingToolsOptions)[] = ["namespace", "risk"];

/** Accepts every context of a call, also none: tools without a schema for it receive it, too. */
export const ANY_CONTEXT: check.StandardSchema = {
  "~standard": { version: 1, vendor: "plue", validate: (value) => ({ value }) },
};

function blockOf(part: unknown): check.ContentBlock {
  const { type, text, image_url, metadata, ...rest } = Object(part);
  if (typeof text === "string") return { type: "text", text };
  const { data, url: address = image_url?.url ?? image_url, ...file } = rest;
  if (isObject(data)) return blockOf({ ...file, ...data });
  const [, inlineType, inline] = /^data:([^;,]+);base64,(.*)$/s.exec(`${address}`) ?? [];
  const bytes: unknown = inline ?? data;
  const givenType = inlineType ?? file.mediaType ?? file.mime_type ?? file.mimeType;
  const mimeType = givenType ?? "application/octet-stream";
  const name = file.filename ?? metadata?.filename ?? "file";
  if (typeof bytes !== "string") {
    if (address !== undefined) return { type: "resource_link", uri: `${address}`, name, mimeType };
    throw new TypeError(
      `Cannot return a part of type "${type}": it must have text, base64 or a URL`,
    );
  }
  const kind = mimeType.split("/")[0];
  if (kind === "image" || kind === "audio") return { type: kind, data: bytes, mimeType };
  const uri = `file:///${encodeURIComponent(name)}`;
  return { type: "resource", resource: { uri, mimeType, blob: bytes } };
}

/** Returns a result for the model, and data that only the application receives. */
export function withMetadata(
  parts: readonly unknown[],
  metadata: { readonly [key: string]: unknown },
): ToolResult {
  return ToolResult.blocks(parts.map(blockOf), {
    ...Object.keys(metadata).length > 0 && { metadata },
  });
}
