import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import { type RiskLevel, type ToolDefinition, ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { rules } from "../../../src/adapters/rules/mod.ts";
import { opaPolicy } from "../../../src/adapters/policies/mod.ts";
import { maybe } from "../../support/skip.ts";

const REGO = fileURLToPath(new URL("./tools.rego", import.meta.url));

/** The program of `tools.rego`, compiled by OPA. */
function compile(): Uint8Array<ArrayBuffer> {
  const folder = mkdtempSync(join(tmpdir(), "plue-opa-"));
  try {
    const bundle = join(folder, "bundle.tar.gz");
    const built = spawnSync("opa", [
      ...["build", "--target", "wasm", "--entrypoint", "tools/decision"],
      ...["--output", bundle, REGO],
    ], { encoding: "utf8" });
    assertEquals(built.status, 0, built.stderr);
    const unpacked = spawnSync("tar", ["-xzf", bundle, "-C", folder, "/policy.wasm"]);
    assertEquals(unpacked.status, 0, String(unpacked.stderr));
    return new Uint8Array(readFileSync(join(folder, "policy.wasm")));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The bytes of `tools.wat`, assembled by `wat2wasm`, because no package of npm compiles Rego. */
const BY_HAND = [
  "AGFzbQEAAAABGwRgAAF/YAF/AX9gAn9/AX9gB39/f39/f38BfwIPAQNlbnYGbWVtb3J5AgABAwkIAAAAAQIBAgMGEQN/",
  "AUGACAt/AEEBC38AQQILB5oBCRRvcGFfd2FzbV9hYmlfdmVyc2lvbgMBGm9wYV93YXNtX2FiaV9taW5vcl92ZXJzaW9u",
  "AwIIYnVpbHRpbnMAAAtlbnRyeXBvaW50cwABEG9wYV9oZWFwX3B0cl9nZXQAAgpvcGFfbWFsbG9jAAMOb3BhX2pzb25f",
  "cGFyc2UABA1vcGFfanNvbl9kdW1wAAUIb3BhX2V2YWwABwqbAQgEAEEQCwQAQSALBAAjAAsLACMAIwAgAGokAAsEACAA",
  "CwQAIAALUgECfyAAIAFqIQIDQCAAIAJPBEBBCQ8LIANBDEYEQCAALQAAQTBrDwsgAC0AAEGAASADai0AAEYEQCADQQFq",
  "IQMFQQAhAwsgAEEBaiEADAALAAshACADIAQQBkECSQRAQawCQaABIAEbDwtBygJByAEgARsLC9wBBwBBEAsDe30AAEEg",
  "CyV7InRvb2xzL2RlY2lzaW9uIjowLCJ0b29scy9hbGxvdyI6MX0AAEGAAQsMInJpc2tMZXZlbCI6AEGgAQscW3sicmVz",
  "dWx0Ijp7ImFsbG93Ijp0cnVlfX1dAABByAELTlt7InJlc3VsdCI6eyJhbGxvdyI6ZmFsc2UsInJlYXNvbiI6Im9ubHkg",
  "ZmlsZXMgb2YgbG93IHJpc2sgYXJlIGZvciBndWVzdHMifX1dAABBrAILElt7InJlc3VsdCI6dHJ1ZX1dAABBygILA1td",
  "AA==",
].join("");

const registry = new ToolRegistry({
  tools: [
    { name: "read", description: "Reads.", risk: "low", tags: ["files"] },
    { name: "fetch", description: "Fetches.", risk: "low" },
    { name: "rm", description: "Deletes.", risk: "high", tags: ["files"] },
  ],
});

describe("opaPolicy() with @open-policy-agent/opa-wasm", () => {
  it("keeps the tools that a program allows, and explains the denials", async () => {
    const bytes = Uint8Array.from(atob(BY_HAND), (sign) => sign.charCodeAt(0));
    const program = await loadPolicy(bytes);
    for (
      const [entrypoint, ids, reason] of [
        [undefined, ["fetch", "read"], "only files of low risk are for guests"],
        ["tools/decision", ["fetch", "read"], "only files of low risk are for guests"],
        ["tools/allow", ["fetch", "read"], "the rule is undefined for this tool"],
        ["tools/other", [], "threw: entrypoint tools/other is not valid in this instance"],
      ] as const
    ) {
      const chosen = { evaluate: (input: unknown) => program.evaluate(input, entrypoint) };
      const policies = [opaPolicy(entrypoint === undefined ? program : chosen)];
      const toolset = registry.select({ policies });
      assertEquals(toolset.ids, ids);
      assertStringIncludes(toolset.explain("rm").reason, reason);
    }
  });

  it("decides on calls as a rule", async () => {
    const program = await loadPolicy(Uint8Array.from(atob(BY_HAND), (sign) => sign.charCodeAt(0)));
    const tools = ["low", "high"].map((risk): ToolDefinition => ({
      ...{ name: risk, description: "Runs.", risk: risk as RiskLevel, execute: () => "ran" },
    }));
    const decided = rules([opaPolicy(program)]);
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }), { rules: decided });
    assertEquals((await dispatcher.dispatch({ name: "low" })).ok, true);
    const refused = await dispatcher.dispatch({ name: "high" });
    assertStringIncludes(refused.ok ? "" : refused.error.message, "only files of low risk");
  });

  const compiled = maybe(
    spawnSync("opa", ["version"]).status === 0,
    "the command opa, which compiles Rego, is not installed",
  );

  compiled("keeps what a compiled rule keeps, and shows its reason", async () => {
    const program = await loadPolicy(compile());
    const seenBy = (user: string) =>
      registry.select({ policies: [opaPolicy(program, { input: { user } })] });
    assertEquals(seenBy("ada").ids, ["read"]);
    assertEquals(seenBy("bob").ids, []);
    assertStringIncludes(
      seenBy("ada").explain("rm").reason,
      "policy opa denies it: only files of low risk are for guests",
    );
  });
});
