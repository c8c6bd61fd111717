/**
 * The tools that the oracles judge: hand-written tools that use every field, and the 117 of
 * GitHub's MCP server if its list is available.
 *
 * @module
 */

import { existsSync, readFileSync } from "node:fs";
import { createToolBridge } from "../../src/finding/mod.ts";
import { importTools } from "../../src/formats/mod.ts";
import { buildToolset } from "../../src/select/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";

const PLACE = {
  type: "object",
  properties: {
    line: { type: "integer", exclusiveMinimum: 0 },
    file: { type: "string" },
  },
  required: ["line"],
};

const NODE = {
  type: "object",
  properties: {
    value: { type: "string" },
    next: { $ref: "#/$defs/node" },
  },
  required: ["value"],
};

/** Tools that every strict mode can hold. */
export const SIMPLE: readonly Tool[] = Object.freeze([
  makeTool({ name: "now", description: "Tells the time." }),
  makeTool({
    name: "weather",
    namespace: "world",
    title: "Weather",
    description: "Tells the weather.",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", description: "A city.", minLength: 1 },
        unit: { type: "string", enum: ["c", "f"], default: "c" },
        days: { type: "integer", minimum: 1, maximum: 14 },
        since: { type: "string", format: "date-time" },
      },
      required: ["city"],
      additionalProperties: false,
    },
    returns: {
      type: "object",
      properties: { degrees: { type: "number" } },
      required: ["degrees"],
    },
    examples: [{
      description: "A day in Rome.",
      input: { city: "Rome", days: 1 },
    }],
    annotations: { readOnlyHint: true, openWorldHint: true },
    icons: [{
      src: "https://example.com/weather.png",
      mimeType: "image/png",
      sizes: ["48x48"],
    }],
  }),
  makeTool({
    name: "find",
    namespace: "world",
    description: "Finds places.",
    parameters: {
      type: "object",
      properties: {
        query: {
          anyOf: [{ type: "string" }, {
            type: "array",
            items: { type: "string" },
          }],
        },
        limit: { type: ["integer", "null"] },
        tags: {
          type: "array",
          items: { type: "string" },
          minItems: 1,
          maxItems: 5,
        },
        near: {
          type: "object",
          properties: { lat: { type: "number" }, lon: { type: "number" } },
          required: ["lat", "lon"],
          additionalProperties: false,
        },
      },
      required: ["query"],
      additionalProperties: false,
    },
    returns: { type: "array", items: { type: "string" } },
  }),
]);

/** Tools whose schemas need a transform, or lose something, at most targets. */
export const HARD: readonly Tool[] = Object.freeze([
  makeTool({
    name: "edit",
    description: "Edits a file.",
    parameters: {
      type: "object",
      properties: {
        target: { oneOf: [{ type: "string" }, { $ref: "#/$defs/place" }] },
        kind: { const: "replace" },
        weight: { type: "number", exclusiveMinimum: 0, multipleOf: 0.5 },
        level: { enum: [1, 2, 3] },
        range: {
          type: "array",
          prefixItems: [{ type: "integer" }, { type: "integer" }],
          items: false,
          minItems: 2,
        },
        options: {
          allOf: [
            { type: "object", properties: { dry: { type: "boolean" } } },
            {
              type: "object",
              properties: { force: { type: "boolean" } },
              required: ["force"],
            },
          ],
        },
        anything: {},
        "$top": { type: "integer" },
      },
      required: ["target"],
      $defs: { place: PLACE },
    },
    returns: {
      anyOf: [{ type: "string" }, { $ref: "#/$defs/node" }],
      $defs: { node: NODE },
    },
  }),
  makeTool({
    name: "environment",
    description: "Sets variables.",
    parameters: {
      type: "object",
      properties: {
        values: { type: "object", additionalProperties: { type: "string" } },
        names: {
          type: "array",
          items: { type: "string", pattern: "^[A-Z_]+$" },
          uniqueItems: true,
        },
      },
      required: ["values"],
      minProperties: 1,
    },
    annotations: { destructiveHint: true, idempotentHint: true },
  }),
  makeTool({
    name: "walk",
    description: "Walks a list.",
    parameters: {
      type: "object",
      properties: { first: { $ref: "#/$defs/node" } },
      required: ["first"],
      $defs: { node: NODE },
    },
  }),
  makeTool({
    name: "either",
    description: "Takes one of two.",
    parameters: {
      type: "object",
      properties: { id: { type: "string" }, name: { type: "string" } },
      oneOf: [{ required: ["id"] }, { required: ["name"] }],
    },
  }),
  makeTool({
    name: "legacy",
    description: "Was written for draft-07.",
    parameters: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        pair: {
          type: "array",
          items: [{ type: "string" }, { type: "number" }],
        },
        shape: { $ref: "#/definitions/shape" },
        on: { type: "boolean" },
      },
      dependencies: { pair: ["shape"] },
      definitions: { shape: { type: "string", enum: ["round", "square"] } },
    },
  }),
]);

/** Tools that say something to providers. */
export const HINTED: readonly Tool[] = Object.freeze([
  makeTool({
    name: "orders",
    namespace: "crm",
    description: "Lists orders.",
    parameters: {
      type: "object",
      properties: { customer: { type: "string" } },
      required: ["customer"],
      additionalProperties: false,
    },
    examples: [{ input: { customer: "c1" } }],
    meta: {
      "com.example/owner": "sales",
      provider: {
        deferLoading: true,
        allowedCallers: ["direct", "programmatic"],
        async: false,
        cacheControl: { type: "ephemeral", ttl: "1h" },
        eagerInputStreaming: true,
        taskSupport: "optional",
        namespaceDescription: "Customers and their orders.",
      },
    },
  }),
]);

const GITHUB_FILE = new URL("../../../shared/data/github-mcp-tools.json", import.meta.url);

/** GitHub's list as its server gives it, or `undefined` where it is not. */
export const GITHUB_LIST: { readonly tools: readonly unknown[] } | undefined =
  existsSync(GITHUB_FILE) ? JSON.parse(readFileSync(GITHUB_FILE, "utf8")) : undefined;

/** Why tests of GitHub's tools are skipped. */
export const NO_GITHUB = "../shared/data/github-mcp-tools.json is not there";

/** GitHub's tools; none where its list is not. */
export const GITHUB: readonly Tool[] = GITHUB_LIST === undefined
  ? Object.freeze([])
  : importTools("mcp", GITHUB_LIST, { namespace: "github" }).tools;

/** All tools, and the tools of a bridge. */
export const ALL: readonly Tool[] = Object.freeze([
  ...createToolBridge(buildToolset([])),
  ...SIMPLE,
  ...HARD,
  ...HINTED,
  ...GITHUB,
]);
