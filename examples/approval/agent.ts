/**
 * An agent loop that stops for approval. It may be killed while it waits, and continues when it is
 * started again: `bun examples/approval/agent.ts FOLDER`. The conversation and the calls are stored
 * in the folder. The model is a script, so that the example needs no network.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { type Answers, ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { storedTickets } from "../../src/adapters/calls/mod.ts";
import { sqliteCallStore } from "../../src/adapters/sqlite/mod.ts";
import { dispatchResponse, exportTools, resumeTurn, type Turn } from "../../src/formats/mod.ts";

const registry = new ToolRegistry({
  tools: [{
    name: "erase",
    description: "Erases the records of a year.",
    risk: "high",
    requiresApproval: true,
    parameters: { type: "object", properties: { year: { type: "integer" } }, required: ["year"] },
    execute(params) {
      const { year } = params as { readonly year: number };
      console.log(`erased ${year}`);
      return `The records of ${year} are gone`;
    },
  }],
});

/** The messages, and the turn that waits for answers, if there is one. */
interface Conversation {
  readonly messages: readonly unknown[];
  readonly waiting?: Turn;
}

/** Replaces a call of the provider's API. */
function model(messages: readonly unknown[]): { readonly content: readonly unknown[] } {
  const history = JSON.stringify(messages);
  if (!history.includes("tool_result")) {
    return { content: [{ type: "tool_use", id: "toolu_1", name: "erase", input: { year: 1999 } }] };
  }
  const refused = history.includes("was not approved") ? "As you wish." : `That failed: ${history}`;
  return { content: [{ type: "text", text: history.includes("are gone") ? "Done." : refused }] };
}

const folder = process.argv[2] ?? ".agent";
mkdirSync(folder, { recursive: true });
const file = join(folder, "conversation.json");

/** Stores the conversation: a reader sees the old file or the new one, never a part. */
function keep(conversation: Conversation): Conversation {
  writeFileSync(`${file}.new`, JSON.stringify(conversation));
  renameSync(`${file}.new`, file);
  return conversation;
}

/** Asks the person at the terminal each question of a turn. */
async function ask({ suspended }: Turn): Promise<Record<string, Answers>> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const answers: Record<string, Answers> = {};
  for (const { callId, questions, error } of suspended) {
    if (error !== undefined) console.log(error.message);
    const verdicts: Record<string, { readonly action: "accept" | "decline" }> = {};
    for (const { key, message, arguments: args } of questions) {
      console.log(`${message} ${JSON.stringify(args)} (yes or no)`);
      const { value, done } = await lines.next();
      // The input has ended. The turn is stored, so its questions are asked again after a restart.
      if (done) process.exit(1);
      verdicts[key] = { action: value === "yes" ? "accept" : "decline" };
    }
    answers[callId] = verdicts;
  }
  return answers;
}

using store = await sqliteCallStore(join(folder, "calls.db"));
const dispatcher = new ToolDispatcher(registry, { approve: "ask", tickets: storedTickets(store) });
const { names } = exportTools(registry.select(), "anthropic");
const options = { dispatcher, names, context: { principal: "me" } };

let conversation: Conversation = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : keep({ messages: [{ role: "user", content: "Erase what is from 1999" }] });
for (;;) {
  let { messages, waiting: turn } = conversation;
  if (turn === undefined) {
    const response = model(messages);
    messages = [...messages, { role: "assistant", ...response }];
    turn = await dispatchResponse("anthropic", response, options);
    if (turn.calls.length === 0) {
      console.log(JSON.stringify(response.content));
      break;
    }
  }
  // The turn is stored before the question is shown.
  if (turn.suspended.length > 0) {
    conversation = keep({ messages, waiting: turn });
    turn = await resumeTurn("anthropic", turn, await ask(turn), options);
  }
  conversation = turn.suspended.length > 0
    ? keep({ messages, waiting: turn })
    : keep({ messages: [...messages, ...turn.messages] });
}
process.exit(0);
