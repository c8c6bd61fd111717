import { assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { maybe } from "../support/skip.ts";
import { jsonOf } from "./source_tree.ts";

const ENTRIES = Object.values(jsonOf("deno.json")["exports"] as Readonly<Record<string, string>>);

describe("the documentation", () => {
  maybe(Bun.which("deno") !== null, "Deno is not here")(
    "says what every exported name is",
    () => {
      const args = ["doc", "--lint", "--node-modules-dir=manual", ...ENTRIES];
      const { stderr } = Bun.spawnSync(["deno", ...args], {
        env: { ...process.env, NO_COLOR: "1" },
      });
      const problems = stderr.toString();
      // Members of interfaces may speak for themselves, so the linter always has something to say.
      assertStringIncludes(problems, "documentation lint errors");
      const missing = [
        ...problems.matchAll(/error\[missing-jsdoc\].*\n *--> (.*)\n[ |]*\n *\d+ \| export /g),
      ].map(([, place]) => place);
      assertEquals(missing, []);
    },
  );

  it("names in docs/specification.md only tests and exports that are there", async () => {
    const text = await Bun.file("docs/specification.md").text();
    const files = new Set(
      [...new Bun.Glob("{test,examples,ffi}/**/*.{test.ts,c,h}").scanSync(".")]
        .map((file) => file.split("/").at(-1)),
    );
    const tests = [...text.matchAll(/`(?:[\w/]+\/)?(\w[\w.]*\.(?:test\.ts|c|h))`/g)]
      .map(([, name]) => name ?? "");
    assertGreater(tests.length, 30);
    assertEquals([...new Set(tests)].filter((name) => !files.has(name)), []);

    const exported = new Set(
      ["mod.ts", "ffi/include/plue.h", ...new Bun.Glob("src/**/mod.ts").scanSync(".")]
        .flatMap((file) => readFileSync(file, "utf8").match(/\b\w+\b/g) ?? []),
    );
    const symbols = [...text.matchAll(/`([A-Z][a-z]\w+|plue_\w+|by[A-Z]\w+)[`.(]/g)]
      .map(([, name]) => name ?? "");
    assertGreater(symbols.length, 30);
    assertEquals([...new Set(symbols)].filter((name) => !exported.has(name)), []);
  });
});
