// Tools whose runs add a line to the file that the variable RAN names.

import { appendFileSync } from "node:fs";
import process from "node:process";

const ran = (what) => appendFileSync(process.env.RAN, `${what}\n`);

export const pay = {
  name: "pay",
  description: "Pays.",
  risk: "low",
  execute() {
    ran("pay");
    return "paid";
  },
};

export const erase = {
  name: "erase",
  description: "Erases, after it has asked.",
  risk: "low",
  async execute(_, { ask, step }) {
    await step("look", () => ran("look"));
    const { action } = await ask("sure", { kind: "approval", message: "Erase it?" });
    if (action !== "accept") return "kept";
    ran("erase");
    return "erased";
  },
};
