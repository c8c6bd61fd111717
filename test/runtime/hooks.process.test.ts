import { beforeAll, describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { RUN } from "../support/program.ts";
import { OUTCOMES, WAYS } from "./hook_cases.ts";

/** The outcomes that the process printed, by hook and behaviour. */
const answers = new Map<string, string>();
let ended: { readonly code: unknown; readonly errors: string; readonly last: string | undefined };

async function useHooks(): Promise<void> {
  const program = join(import.meta.dirname, "hook_process.ts");
  const child = spawn(process.execPath, [...RUN, program], {
    cwd: join(import.meta.dirname, "../.."),
    env: { ...process.env, NODE_OPTIONS: "", NO_COLOR: "1" },
  });
  let printed = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => printed += text);
  child.stderr.setEncoding("utf8").on("data", (text: string) => errors += text);
  const [code] = await once(child, "close");
  const lines = printed.trim().split("\n");
  for (const line of lines.filter((line) => line.startsWith("["))) {
    const [name, way, answer] = JSON.parse(line);
    answers.set(`${name} ${way}`, answer);
  }
  ended = { code, errors, last: lines.at(-1) };
}

describe("a hook of a host", () => {
  beforeAll(useHooks, 300_000);

  it("never ends the process", () => {
    assertEquals(ended, { code: 0, errors: "", last: "done" });
  });

  for (const [name, outcomes] of Object.entries(OUTCOMES)) {
    it(`does not change the outcome of ${name}`, () => {
      const got = WAYS.map((way) => [way, answers.get(`${name} ${way}`) ?? "never"]);
      const wanted = WAYS.map((way, at) => [
        way,
        typeof outcomes === "string" ? outcomes : outcomes[at],
      ]);
      assertEquals(Object.fromEntries(got), Object.fromEntries(wanted));
    });
  }
});
