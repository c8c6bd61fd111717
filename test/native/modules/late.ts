/** A module of tools, one of which throws where no caller can catch the error. */

import { defineTool, ToolRegistry } from "../../../mod.ts";

const whisper = defineTool({
  name: "whisper",
  description: "Prints what is for its caller alone.",
  execute: () => console.error("error: a secret of another call"),
});

const late = defineTool({
  name: "late",
  description: "Throws out of a timer.",
  execute: () => new Promise(() => setTimeout(() => void fail("late boom"))),
});

function fail(message: string): never {
  throw new TypeError(message);
}

export default new ToolRegistry({ tools: [whisper, late] });
