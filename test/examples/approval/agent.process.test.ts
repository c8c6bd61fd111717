import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { projectFolder, RUN } from "../../support/program.ts";

/** Starts the agent, and waits for its question. */
async function start(folder: string) {
  const child = spawn(process.execPath, [...RUN, "examples/approval/agent.ts", folder], {
    cwd: projectFolder,
    env: { ...process.env, NODE_OPTIONS: "" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
  while (!output.includes("yes or no")) {
    const more = await Promise.race([once(child.stdout, "data"), ended]);
    if (more.length === 2) throw new Error(`The agent ended with ${more}, and printed ${output}`);
  }
  return {
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    async answer(word: string) {
      child.stdin.write(`${word}\n`);
      const [code] = await ended;
      return { code, output };
    },
  };
}

describe("the example agent", () => {
  for (const [word, text] of [["yes", "Done."], ["no", "As you wish."]] as const) {
    it(`continues after it was killed while it waited for "${word}"`, async () => {
      const folder = await mkdtemp(join(tmpdir(), "plue-agent-"));
      try {
        await (await start(folder)).kill();
        await (await start(folder)).kill();
        const { code, output } = await (await start(folder)).answer(word);
        assertEquals(code, 0);
        assertStringIncludes(output, 'Run the tool "erase"? {"year":1999}');
        assertStringIncludes(output, text);
        assertEquals(output.split("erased 1999").length - 1, word === "yes" ? 1 : 0);
        const { messages } = JSON.parse(await readFile(join(folder, "conversation.json"), "utf8"));
        assertEquals(messages.map(({ role }: { role: string }) => role), [
          "user",
          "assistant",
          "user",
        ]);
      } finally {
        await rm(folder, { recursive: true });
      }
    }, 60_000);
  }
});
