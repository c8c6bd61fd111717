import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe } from "bun:test";
import { maybe } from "../../test/support/skip.ts";
import { hasServer } from "./cluster.ts";

const RUN = "Deno" in globalThis
  ? ["run", "--allow-all", "--no-config", "--import-map=deno.json", "--node-modules-dir=manual"]
  : "Bun" in globalThis
  ? []
  : ["--import", join(import.meta.dirname, "../../test/support/node_hook.mjs")];

describe("the example cluster", () => {
  maybe(hasServer(), "nats-server is not installed")(
    "answers every call, though a worker is killed",
    async () => {
      const child = spawn(process.execPath, [...RUN, join(import.meta.dirname, "main.ts")], {
        cwd: join(import.meta.dirname, "../.."),
        stdio: ["ignore", "pipe", "inherit"],
      });
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
      const [code] = await once(child, "close");
      assertEquals([code, output.includes("killing")], [0, true], output);
      assertStringIncludes(output, "again: done 200");
      assertStringIncludes(output, "task: done 200");
      assertStringIncludes(output, "of those that may not be 0");
    },
  );
});
