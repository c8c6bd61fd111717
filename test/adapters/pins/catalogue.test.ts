import { describe, it } from "bun:test";
import { holdsBackChanges, letsOrdersIn } from "./catalogue_laws.ts";
import type { ListedTool } from "./mutate.ts";

/** Tools with every field that MCP has, and the forms of schemas that servers use. */
const CATALOGUE: readonly ListedTool[] = [
  {
    name: "read_file",
    title: "Read a file",
    description: "Reads a file of the workspace.",
    inputSchema: {
      type: "object",
      properties: {
        path: { type: "string", description: "Where it is.", minLength: 1, maxLength: 4_096 },
        encoding: { type: "string", enum: ["utf8", "base64", "latin1"], default: "utf8" },
        lines: { type: ["integer", "null"], minimum: 1 },
      },
      required: ["path", "encoding"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: { text: { type: "string" }, bytes: { type: "integer", minimum: 0 } },
      required: ["text", "bytes"],
    },
    annotations: { title: "Read", readOnlyHint: true, openWorldHint: false },
    icons: [{ src: "https://files.example/read.png", mimeType: "image/png", sizes: ["48x48"] }],
    execution: { taskSupport: "optional" },
    _meta: { "files.example/version": 2 },
  },
  {
    name: "search",
    description: "Searches texts.",
    inputSchema: {
      type: "object",
      properties: {
        query: {
          anyOf: [
            { type: "string", maxLength: 200 },
            { type: "array", items: { type: "string" }, minItems: 1, uniqueItems: true },
          ],
        },
        where: { $ref: "#/$defs/place" },
        // Properties that are called like keywords.
        required: { type: "boolean" },
        enum: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] },
      },
      required: ["query"],
      dependentRequired: { where: ["query", "required"] },
      $defs: {
        place: {
          oneOf: [
            { type: "object", properties: { folder: { const: "src" } }, required: ["folder"] },
            { type: "string", pattern: "^/" },
          ],
        },
      },
    },
    annotations: { readOnlyHint: true, idempotentHint: true },
  },
  {
    name: "delete_file",
    description: "Deletes a file.",
    inputSchema: {
      type: "object",
      properties: { path: { type: "string" }, force: { type: "boolean", default: false } },
      required: ["path"],
      if: { properties: { force: { const: true } } },
      then: { required: ["force", "path"] },
    },
    annotations: { destructiveHint: true },
  },
];

describe("toolPins() and a catalogue", () => {
  it("holds back each of 500 changes", () => holdsBackChanges(CATALOGUE));

  it("holds back none of 500 orders that mean the same", () => letsOrdersIn(CATALOGUE));
});
