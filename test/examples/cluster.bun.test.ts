import process from "node:process";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe } from "bun:test";
import { hasServer } from "../../examples/cluster/cluster.ts";
import { startProgram } from "../support/program.ts";
import { maybe } from "../support/skip.ts";

// `npm run cluster` runs on Bun, and starts a worker on each runtime. test/nats runs the other parts
// on each runtime.
describe("the example cluster", () => {
  maybe(hasServer(), "nats-server is not installed")(
    "answers every call, though a worker is killed",
    async () => {
      await using program = startProgram(process.execPath, ["examples/cluster/main.ts"]);
      const { code } = await program.ended;
      const { stdout, stderr } = program.output;
      assertEquals([code, stdout.includes("killing")], [0, true], stdout + stderr);
      assertStringIncludes(stdout, "again: done 200");
      assertStringIncludes(stdout, "task: done 200");
      assertStringIncludes(stdout, "of those that may not be 0");
    },
  );
});
