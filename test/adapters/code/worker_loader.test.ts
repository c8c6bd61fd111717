import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { workerLoader, type WorkerLoaderBinding } from "../../../src/adapters/code/mod.ts";
import { describeExecutor, programOf, valueOf } from "../../contract/executor_contract.ts";
import { maybe } from "../../support/skip.ts";
import { loaderBinding, sharedExecutor } from "./support.ts";

const loader = await loaderBinding();

if (loader !== undefined) {
  describeExecutor("workerLoader", () => workerLoader(loader));
  describeExecutor("quickJs in workerd", sharedExecutor);

  describe("workerLoader() in workerd", () => {
    it("does not run a program again that calls its own Worker", async () => {
      const source = `globalThis.runs = (globalThis.runs ?? 0) + 1;
        const { exports } = await import("cloudflare:workers");
        if (runs < 9) await exports.default.run(async () => "", "{}");
        return runs;`;
      assertEquals(valueOf(await workerLoader(loader).run(programOf(source))), 1);
    });
  });

  describe("quickJs() in workerd, whose clock stands still", () => {
    it("stops a program within a built-in operation", async () => {
      const source = "[].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true });";
      const end = await (await sharedExecutor()).run(programOf(source));
      assertEquals(end.kind, "stopped");
    });
  });
}
maybe(loader !== undefined, "only workerd has it")(
  "the binding of Worker Loaders exists",
  () => {},
);

/** A binding whose programs end in a given way. */
const endingWith = (
  run: (exchange: (output: string) => Promise<string>) => Promise<void>,
): WorkerLoaderBinding => ({ load: () => ({ getEntrypoint: () => ({ run }) }) });

describe("workerLoader()", () => {
  it("reports why the platform has ended a program", async () => {
    const loader = endingWith(() => Promise.reject(new Error("Worker exceeded CPU time limit.")));
    const end = await workerLoader(loader).run(programOf("for (;;) {}"));
    assert(end.kind === "stopped");
    assertStringIncludes(end.why, "Worker exceeded CPU time limit.");
  });

  it("ends a program whose Worker ends or sends outputs out of turn", async () => {
    const silent = endingWith(() => Promise.resolve());
    const ended = await workerLoader(silent).run(programOf(""));
    assertEquals(ended.kind, "stopped");

    const replies: unknown[] = [];
    const talking = endingWith(async (exchange) => {
      const outputs = ['\n"a"\n1', "2", "3"];
      replies.push(...await Promise.all(outputs.map((output) => exchange(output))));
    });
    const stopped = await workerLoader(talking).run(programOf(""));
    assertEquals(stopped.kind, "stopped");
    assertEquals(replies.slice(1), ["", ""]);
  });

  it("rejects when the signal aborts while a program computes", async () => {
    const controller = new AbortController();
    const loader = endingWith(() => (controller.abort(new Error("Stop.")), new Promise(() => {})));
    const program = programOf("for (;;) {}", { signal: controller.signal });
    await assertRejects(() => workerLoader(loader).run(program), Error, "Stop.");
  });

  it("passes the limits and no access to the loaded Worker", async () => {
    const codes: Parameters<WorkerLoaderBinding["load"]>[0][] = [];
    const loader = endingWith(() => Promise.reject(new Error("over")));
    await workerLoader({ load: (code) => (codes.push(code), loader.load(code)) }).run(
      programOf(""),
    );
    const [{ env, globalOutbound, limits }] = codes as [(typeof codes)[0] & object];
    assertEquals([env, globalOutbound, limits.cpuMs], [{}, null, 500]);
  });

  it("rejects a value that is not a binding", () => {
    assertThrows(() => workerLoader({} as WorkerLoaderBinding), TypeError, "env.LOADER");
  });
});
