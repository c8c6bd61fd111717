/** `echo`: returns its message, to try out a connection. */

import { Type } from "typebox";
import { defineTool, type Tool } from "../../../mod.ts";

const Parameters = Type.Object({
  message: Type.String({ description: "The text to return.", maxLength: 65_536 }),
}, { additionalProperties: false });

/** The tool `echo`. */
export const echo: Tool = defineTool({
  name: "echo",
  title: "Echo",
  description: "Echoes back the input message (for testing)",
  parameters: Parameters,
  returns: Parameters,
  category: "system",
  risk: "safe",
  tags: ["read-only", "test"],
  idempotent: true,
  examples: [{ input: { message: "hello" }, output: { message: "hello" } }],
  execute: ({ message }) => ({ message }),
});
