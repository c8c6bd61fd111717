/**
 * Ten tasks over GitHub's operations and the workspace, each done in three ways: with the plain
 * tools, with a bridge, and with a program in code mode. The model is a script that makes no
 * mistake, so the figures measure the conversation, not a model. The list of tools and the
 * conversation count in each turn, because providers count them so without a cache.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { workspaceTools } from "../examples/workspace/mod.ts";
import { Workspace } from "../examples/workspace/workspace.ts";
import { ToolDispatcher, ToolRegistry } from "../mod.ts";
import { table } from "../scripts/lib/table.mjs";
import { codeTool, quickJs, toolsAsTypeScript } from "../src/adapters/code/mod.ts";
import { countTokens, createToolBridge } from "../src/finding/mod.ts";
import { exportTools } from "../src/formats/mod.ts";
import { buildToolset, type Toolset } from "../src/select/mod.ts";
import { githubTools } from "./code/github.ts";
import { drawTokens } from "./code/picture.ts";
import { printRuns } from "./code/runs.ts";
import { type Task, type TaskCall, TASKS } from "./code/tasks.ts";

const ROUNDS = 5;

await printRuns();

const github = await githubTools();
if (github === undefined) {
  console.log("GitHub's document is not here: set GITHUB_OPENAPI to generated/api.github.com.json");
  console.log("of the npm package @octokit/openapi");
  process.exit();
}
const root = mkdtempSync(join(tmpdir(), "plue-code-"));
const registry = new ToolRegistry({
  tools: [...github, ...workspaceTools],
  services: { workspace: new Workspace({ root }) },
});
const tools = registry.select();
const wasm = readFileSync(new URL(import.meta.resolve("quickjs-wasi/quickjs.wasm")));

/** The conversation of one task: the input and the output of the model. */
class Conversation {
  readonly #dispatcher: ToolDispatcher;
  readonly #list: number;
  #length = 0;
  turns = 0;
  tokensIn = 0;
  tokensOut = 0;

  constructor(toolset: Toolset, question: string) {
    this.#dispatcher = new ToolDispatcher(registry).withToolset(toolset);
    this.#list = listTokens(toolset);
    this.#length = countTokens(question);
  }

  /** Counts a turn in which the model writes a text. */
  write(text: string): void {
    this.turns++;
    this.tokensIn += this.#list + this.#length;
    this.tokensOut += countTokens(text);
    this.#length += countTokens(text);
  }

  // deno-lint-ignore no-explicit-any -- The results are those of any tool.
  async call(calls: readonly TaskCall[]): Promise<any[]> {
    this.write(JSON.stringify(calls.map(([name, args]) => ({ name, arguments: args }))));
    return await Promise.all(calls.map(async ([name, args]) => {
      const result = await this.#dispatcher.dispatch({ name, arguments: args });
      if (!result.ok) throw new Error(`${name}: ${result.error.message}`);
      this.#length += countTokens(JSON.stringify(result.content));
      return result.content;
    }));
  }
}

const lists = new Map<Toolset, number>();
function listTokens(toolset: Toolset): number {
  const tokens = lists.get(toolset) ??
    countTokens(JSON.stringify(exportTools(toolset.available(), "anthropic").tools));
  lists.set(toolset, tokens);
  return tokens;
}

const searchesOf = ({ searches }: Task): TaskCall[] =>
  searches.map((query) => ["search_tools", { query }]);

const WAYS: Readonly<
  Record<string, readonly [Toolset, (talk: Conversation, task: Task) => Promise<unknown>]>
> = {
  "plain tools": [tools, (talk, task) => task.steps((calls) => talk.call(calls))],
  "bridge": [createToolBridge(tools), async (talk, task) => {
    await talk.call(searchesOf(task));
    return await task.steps((calls) =>
      talk.call(calls.map(([name, args]) => ["call_tool", { name, arguments: args }]))
    );
  }],
  "code mode": [codeTool(tools, { executor: quickJs(wasm) }), async (talk, task) => {
    await talk.call(searchesOf(task));
    const [{ value }] = await talk.call([["run_code", { code: task.program }]]);
    return value;
  }],
};

function writeNotes(): void {
  rmSync(join(root, "notes"), { recursive: true, force: true });
  mkdirSync(join(root, "notes"));
  for (let file = 1; file <= 20; file++) {
    const lines = Array.from(
      { length: 20 + file },
      (_, line) => `The meeting ${line} of ${file % 3 === 0 ? 2025 : 2026} was short and useful.`,
    );
    writeFileSync(join(root, `notes/${file}.txt`), lines.join("\n"));
  }
}

const totals = new Map<string, readonly number[]>();
const rows: string[][] = [];
const drawn: { readonly task: string; readonly tokens: Record<string, number> }[] = [];
for (const [at, task] of TASKS.entries()) {
  const answers = new Set<string>();
  const tokens: Record<string, number> = {};
  drawn.push({ task: task.title, tokens });
  for (const [way, [toolset, run]] of Object.entries(WAYS)) {
    let fastest = Infinity;
    let talk = new Conversation(toolset, task.question);
    for (let round = 0; round < ROUNDS; round++) {
      writeNotes();
      talk = new Conversation(toolset, task.question);
      const from = performance.now();
      const answer = JSON.stringify(await run(talk, task));
      fastest = Math.min(fastest, performance.now() - from);
      talk.write(answer);
      answers.add(answer);
    }
    tokens[way] = talk.tokensIn;
    const figures = [talk.turns, talk.tokensIn, talk.tokensOut, fastest];
    totals.set(way, figures.map((figure, index) => figure + (totals.get(way)?.[index] ?? 0)));
    rows.push([
      `${at + 1}`,
      way,
      ...figures.map((figure) => Math.round(figure).toLocaleString("en")),
    ]);
  }
  if (answers.size !== 1) throw new Error(`"${task.question}" has ${answers.size} answers`);
}
rmSync(root, { recursive: true });
for (const [way, figures] of totals) {
  rows.push(["all", way, ...figures.map((figure) => Math.round(figure).toLocaleString("en"))]);
}
for (const [way, [toolset]] of Object.entries(WAYS)) {
  console.log(`${way}: the list of tools has ${listTokens(toolset).toLocaleString("en")} tokens`);
}
writeFileSync(new URL("../docs/code_tokens.svg", import.meta.url), drawTokens(drawn));
console.log(table(["task", "way", "turns", "tokens in", "tokens out", "ms"], rows));

const emptyTokens = countTokens(toolsAsTypeScript(buildToolset([])));
const typeTokens = (list: NonNullable<typeof github>): number =>
  countTokens(toolsAsTypeScript(buildToolset(list))) - emptyTokens;
const typed = await githubTools({ returns: true }) ?? [];
const alone = typed.reduce((sum, tool) => sum + typeTokens([tool]), 0).toLocaleString("en");
const together = typeTokens(typed).toLocaleString("en");
console.log(`GitHub's operations as TypeScript have ${together} tokens, and one by one ${alone}`);
