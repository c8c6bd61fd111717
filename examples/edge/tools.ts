/**
 * Tools that need nothing but the language and Web Crypto: they run wherever `fetch` handlers do.
 * Their schemas are plain JSON Schema, so the bundle holds no schema builder.
 */

import { defineTool, type Tool, ToolResult } from "../../mod.ts";

const MAX_TEXT_LENGTH = 100_000;

const text = { type: "string", maxLength: MAX_TEXT_LENGTH } as const;

/** Finding words and sentences takes microseconds for each character. */
const MAX_STATS_LENGTH = 10_000;

const echo = defineTool({
  name: "echo",
  description: "Answers the message it is given, unchanged. Use it to try out the connection.",
  parameters: {
    type: "object",
    properties: { message: text },
    required: ["message"],
    additionalProperties: false,
  },
  category: "system",
  risk: "safe",
  tags: ["read-only", "test"],
  examples: [{ input: { message: "hello" }, output: { message: "hello" } }],
  execute: ({ message }) => ({ message }),
});

const stats = defineTool({
  namespace: "text",
  name: "stats",
  description: "Counts the characters, words, sentences and lines of a text, in any language.",
  parameters: {
    type: "object",
    properties: {
      text: { type: "string", maxLength: MAX_STATS_LENGTH },
      language: {
        type: "string",
        description: 'A language tag such as "en" or "ja", for where words end.',
        pattern: "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$",
      },
    },
    required: ["text"],
    additionalProperties: false,
  },
  returns: {
    type: "object",
    properties: {
      characters: { type: "integer" },
      words: { type: "integer" },
      sentences: { type: "integer" },
      lines: { type: "integer" },
    },
    required: ["characters", "words", "sentences", "lines"],
  },
  risk: "safe",
  tags: ["read-only", "text"],
  examples: [{ input: { text: "Two words." } }],
  execute({ text, language = "en" }) {
    const count = (granularity: "grapheme" | "word" | "sentence") => {
      let found = 0;
      for (const part of new Intl.Segmenter(language, { granularity }).segment(text)) {
        if (granularity !== "word" || part.isWordLike === true) found++;
      }
      return found;
    };
    return {
      characters: count("grapheme"),
      words: count("word"),
      sentences: count("sentence"),
      lines: text === "" ? 0 : text.split(/\r\n|\r|\n/).length,
    };
  },
});

const digest = defineTool({
  namespace: "text",
  name: "digest",
  description: "Computes the SHA-2 digest of a text (as UTF-8), in hexadecimal.",
  parameters: {
    type: "object",
    properties: {
      text,
      algorithm: { type: "string", enum: ["SHA-256", "SHA-384", "SHA-512"], default: "SHA-256" },
    },
    required: ["text"],
    additionalProperties: false,
  },
  returns: { type: "string", pattern: "^[0-9a-f]+$" },
  risk: "safe",
  tags: ["read-only", "text"],
  examples: [{ input: { text: "abc" } }],
  async execute({ text, algorithm = "SHA-256" }) {
    const bytes = await crypto.subtle.digest(algorithm, new TextEncoder().encode(text));
    return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
});

const get = defineTool({
  namespace: "json",
  name: "get",
  description: "Finds the part of a JSON document that a JSON Pointer (RFC 6901) names.",
  parameters: {
    type: "object",
    properties: {
      document: { description: "Any JSON." },
      pointer: {
        type: "string",
        description: 'Such as "/items/0/name"; "" is the whole document.',
        maxLength: 1_000,
        pattern: "^(/.*)?$",
      },
    },
    required: ["document", "pointer"],
    additionalProperties: false,
  },
  risk: "safe",
  tags: ["read-only", "json"],
  examples: [{ input: { document: { items: ["a", "b"] }, pointer: "/items/1" }, output: "b" }],
  execute({ document, pointer }) {
    let part: unknown = document;
    for (const raw of pointer.split("/").slice(1)) {
      const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
      // In an array, the pointer finds only items, not "length".
      const isThere = typeof part === "object" && part !== null &&
        (Array.isArray(part)
          ? /^(?:0|[1-9]\d{0,9})$/.test(step) && Number(step) < part.length
          : Object.hasOwn(part, step));
      if (!isThere) {
        return ToolResult.error(
          "invalid_arguments",
          `Cannot find "${pointer.slice(0, 100)}": the document has no ` +
            `${JSON.stringify(step.slice(0, 100))} there`,
        );
      }
      part = (part as { readonly [key: string]: unknown })[step];
    }
    return part;
  },
});

/** The tools, in the order of their ids. */
export const edgeTools: readonly Tool[] = Object.freeze([echo, get, digest, stats]);
