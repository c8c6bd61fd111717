import { describe, it } from "bun:test";
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadPolicy } from "@open-policy-agent/opa-wasm";
import { ToolRegistry } from "../../../mod.ts";
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

describe("opaPolicy() with @open-policy-agent/opa-wasm", () => {
  it("refuses a program that is still being loaded", async () => {
    const loading = loadPolicy(new Uint8Array([0]));
    assertThrows(() => opaPolicy(loading as never), TypeError, "await loadPolicy(…) first");
    await assertRejects(() => loading);
  });

  const compiled = maybe(
    spawnSync("opa", ["version"]).status === 0,
    "the command opa, which compiles Rego, is not installed",
  );

  compiled("keeps what a compiled rule keeps, and shows its reason", async () => {
    const registry = new ToolRegistry({
      tools: [
        { name: "read", description: "Reads.", risk: "low", tags: ["files"] },
        { name: "fetch", description: "Fetches.", risk: "low" },
        { name: "rm", description: "Deletes.", risk: "high", tags: ["files"] },
      ],
    });
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
