import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import { ProgramRun } from "../../../src/adapters/code/program_run.ts";
import { programOf } from "../../contract/executor_contract.ts";
import { maybe } from "../../support/skip.ts";

describe("ProgramRun", () => {
  const onClocks = maybe(!IS_WORKERS, "its clock stands still");
  onClocks("lets the thread do other work between the long turns of two programs", async () => {
    const order: string[] = [];
    const run = (name: string) =>
      new ProgramRun(programOf(""), {
        turn() {
          order.push(name);
          const began = performance.now();
          while (performance.now() - began < 50);
          return '{"end":{"value":"1"}}';
        },
        close() {},
      }).run();
    setTimeout(() => order.push("other work"), 0);
    await Promise.all([run("first"), run("second")]);
    assertEquals(order, ["first", "other work", "second"]);
  });

  it("ends a program that changed what the prelude returns", async () => {
    const outputs = [
      ...["null", "1", '{"end":{}}', '{"end":{"failed":[{"toString":1}]}}'],
      '{"calls":[[0,{"toString":1},[]]],"log":[{}],"end":{"value":"1"}}',
    ];
    for (const output of outputs) {
      const turns = [output, ""];
      const sandbox = { turn: () => turns.shift() ?? "", close() {} };
      const { kind } = await new ProgramRun(programOf(""), sandbox).run();
      assert(["stopped", "threw", "returned"].includes(kind), output);
    }
  });
});
