import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import { ProgramRun, Stopped } from "../../../src/adapters/code/program_run.ts";
import { programOf } from "../../contract/executor_contract.ts";
import { maybe } from "../../support/skip.ts";

const run = (turn: () => string) => new ProgramRun(programOf(""), { turn, close() {} }).run();

/** Runs a program that blocks the event loop for one long turn. */
const runLong = (begin: () => void = () => {}, isStopped = false) =>
  run(() => {
    begin();
    const began = performance.now();
    while (performance.now() - began < 50);
    if (isStopped) throw new Stopped("it exceeds a limit");
    return '{"value":"1"}';
  });

/** Ends the time of turns that earlier programs have used: the next program has all of it. */
async function restoreTime(): Promise<void> {
  await runLong();
  await run(() => '{"value":"1"}');
}

describe("ProgramRun", () => {
  const onClocks = maybe(!IS_WORKERS, "its clock stands still");
  onClocks("lets the thread do other work between the long turns of two programs", async () => {
    for (const isStopped of [false, true]) {
      await restoreTime();
      const order: string[] = [];
      const begin = (): void => void order.push("first");
      setTimeout(() => order.push("other work"), 0);
      await Promise.all([runLong(begin, isStopped), runLong(() => order.push("second"))]);
      assertEquals(order, ["first", "other work", "second"]);
    }
  });

  onClocks("lets the thread do other work between the short turns of a program", async () => {
    await restoreTime();
    let other = false;
    setTimeout(() => other = true, 0);
    let calls = 0;
    const turn = (): string => {
      const began = performance.now();
      while (performance.now() - began < 2);
      return calls++ < 50 && !other ? '\n"a"\n{}' : '{"value":"1"}';
    };
    await run(turn);
    assert(1 < calls && calls < 50, `${calls}`);
  });

  onClocks("runs programs after a request whose timers ended with it", async () => {
    const { setTimeout } = globalThis;
    try {
      await runLong(() => globalThis.setTimeout = (() => 0) as never);
    } finally {
      globalThis.setTimeout = setTimeout;
    }
    assertEquals((await runLong()).kind, "returned");
  });

  it("ends a program that changed what the prelude returns", async () => {
    const outputs = [
      ...["null", "1", "{}", '{"failed":[{"toString":1}]}', '\n"a"', "\n\n"],
      '{"value":"1","log":[{}]}\n{"toString":1}\n[]',
    ];
    for (const output of outputs) {
      const turns = [output, ""];
      const { kind } = await run(() => turns.shift() ?? "");
      assert(["stopped", "threw", "returned"].includes(kind), output);
    }
  });

  it("reads a long output only up to its limits", async () => {
    const { parse } = JSON;
    const { split } = String.prototype;
    let most = 0;
    JSON.parse = (text: string) => (most = Math.max(most, text.length), parse(text));
    String.prototype.split = function (this: string, ...args: Parameters<typeof split>) {
      const parts = split.apply(this, args);
      most = Math.max(most, parts.length);
      return parts;
    } as typeof split;
    try {
      for (
        const output of ["\n".repeat(1e6), `["${"x".repeat(1e6)}"]`, `\n["${"x".repeat(1e6)}"]`]
      ) {
        await run(() => output);
      }
    } finally {
      Object.assign(String.prototype, { split });
      Object.assign(JSON, { parse });
    }
    assert(most < 1_000, `${most}`);
  });
});
