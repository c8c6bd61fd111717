import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe } from "bun:test";
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
});
