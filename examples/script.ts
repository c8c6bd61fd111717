/**
 * A registry in a script: define, register, select, search, call. `bun`, `node` or `deno run`
 * `examples/script.ts` prints:
 *
 * ```text
 * registered: note-add, temperature:convert
 * a reader sees: temperature:convert
 * note-add: "note-add" is removed by risk: risk medium is above the limit low
 * search finds: temperature:convert
 * definition: temperature:convert
 * 100 °C: 212
 * a wrong call: Cannot call "temperature:convert": its arguments do not fit: /celsius must be a number, not a string
 * a hidden tool: unknown_tool
 * ```
 */

import {
  defineTool,
  FunctionDefinition,
  ToolAvailabilityContext,
  ToolDispatcher,
  ToolRegistry,
} from "../mod.ts";

// 1. Define. The types of `celsius` and of the result come from the schemas.
const convert = defineTool({
  namespace: "temperature",
  name: "convert",
  description: "Converts a temperature from degrees Celsius to degrees Fahrenheit.",
  parameters: {
    type: "object",
    properties: { celsius: { type: "number", minimum: -273.15 } },
    required: ["celsius"],
    additionalProperties: false,
  },
  returns: { type: "number" },
  risk: "safe",
  tags: ["read-only", "units"],
  execute: ({ celsius }) => celsius * 1.8 + 32,
});

const notes: string[] = [];
const addNote = defineTool({
  name: "note-add",
  description: "Adds a note to the list of this session.",
  parameters: {
    type: "object",
    properties: { text: { type: "string", minLength: 1 } },
    required: ["text"],
    additionalProperties: false,
  },
  risk: "medium",
  tags: ["write", "notes"],
  execute: ({ text }) => ({ count: notes.push(text) }),
});

// 2. Register.
const registry = new ToolRegistry({ tools: [convert, addNote] });
console.log("registered:", registry.ids.join(", "));

// 3. Select: a reader sees no tool of more than low risk.
const forReader = registry.select({ context: ToolAvailabilityContext.lowRiskOnly });
console.log("a reader sees:", forReader.ids.join(", "));
const { reason } = forReader.explain("note-add");
console.log("note-add:", reason);

// 4. Search in words.
const hits = registry.searchTools("convert temperatures");
console.log("search finds:", hits.map((tool) => tool.id).join(", "));

// 5. Give a model the definition.
console.log("definition:", FunctionDefinition.fromTool(convert).name);

// 6. Call. A call never rejects; an error is a value with a message for the model.
const dispatcher = new ToolDispatcher(forReader);
const ok = await dispatcher.dispatch({
  name: "temperature:convert",
  arguments: '{"celsius": 100}',
});
console.log("100 °C:", ok.ok ? ok.content : ok.error.message);

const wrong = await dispatcher.dispatch({
  name: "temperature:convert",
  arguments: { celsius: "warm" },
});
console.log("a wrong call:", wrong.ok ? wrong.content : wrong.error.message);

const hidden = await dispatcher.dispatch({ name: "note-add", arguments: { text: "hello" } });
console.log("a hidden tool:", hidden.ok ? hidden.content : hidden.error.code);

await registry.dispose();
