/** A module of tools that leave a rejected promise, during their call or after it. */

import process from "node:process";
import { defineTool, ToolRegistry } from "../../../mod.ts";

const turn = () => new Promise((resolve) => setTimeout(resolve));

/** The number of unhandled rejections. */
let strays = 0;
process.on("unhandledRejection", () => strays++);

const now = defineTool({
  name: "now",
  description: "Rejects a promise, and waits until that has been noticed.",
  async execute() {
    const inspect = Symbol.for("nodejs.util.inspect.custom");
    Promise.reject({ [inspect]: () => JSON.parse("") });
    Promise.reject(new Error("a stray, now"));
    while (strays < 2) await turn();
    return process.pid;
  },
});

const later = defineTool({
  name: "later",
  description: "Rejects a promise when its call has ended.",
  execute() {
    setTimeout(() => Promise.reject(new Error("a stray, later")));
    return process.pid;
  },
});

const count = defineTool({
  name: "count",
  description: "Waits for all.",
  async execute() {
    while (strays < 3) await turn();
    return process.pid;
  },
});

export default new ToolRegistry({ tools: [now, later, count] });
