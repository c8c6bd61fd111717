/** A module of tools that prints when it is loaded and when it runs. */

import { defineTool, ToolRegistry } from "../../../mod.ts";

console.log("loud: loading");

const shout = defineTool({
  name: "shout",
  description: "Prints.",
  execute: () => {
    console.log("loud: running");
    return "quiet";
  },
});

export default new ToolRegistry({ tools: [shout] });
