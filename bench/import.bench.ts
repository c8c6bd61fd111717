/**
 * The duration of an import of the package in a new process, compared with other libraries. The
 * library is bundled as for npm, and imported by its name. All libraries are imported in turns, by
 * the runtime that runs the benchmark, so that the ratios are right on a busy machine.
 *
 * The first round, which reads the files from the disk, is not counted.
 */

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { table } from "../scripts/lib/table.mjs";

const ROUNDS = 15;
const ROOT = join(import.meta.dirname, "..");
const PEERS = join(import.meta.dirname, "peers");

const PLUE = ["@plue/tools", "@plue/tools/core", "@plue/tools/hono", "@plue/tools/mcp"];
const OTHERS = [
  "zod",
  "ai",
  "@modelcontextprotocol/sdk/server/mcp.js",
  "@mastra/core/tools",
  "@langchain/core/tools",
  "langchain",
  "@openai/agents",
];

/** The packages that the entries import. */
const BESIDE = ["hono", "@modelcontextprotocol/server"];

/** Bundles the library into an app. */
function install(app: string): void {
  const home = join(app, "node_modules", "@plue", "tools");
  mkdirSync(home, { recursive: true });
  cpSync(join(ROOT, "package.json"), join(home, "package.json"));
  cpSync(join(PEERS, "package.json"), join(app, "package.json"));
  const library = pathToFileURL(join(ROOT, "scripts/lib/library.mjs"));
  const code = `const { bundleLibrary } = await import("${library}");
    await bundleLibrary(process.argv[1]);`;
  execFileSync("node", ["--input-type=module", "-e", code, join(home, "dist")]);
  for (const name of BESIDE) {
    const place = join(app, "node_modules", name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), place);
  }
}

/** The milliseconds of an import in a fresh process. */
function measure(specifier: string, cwd: string): number {
  // A server that a peer starts would keep the process alive.
  const code = `import process from "node:process";
    const start = performance.now();
    await import("${specifier}");
    console.log(performance.now() - start);
    process.exit();`;
  const flags = "Deno" in globalThis
    ? ["eval", "--node-modules-dir=manual"]
    : "Bun" in globalThis
    ? ["-e"]
    : ["--input-type=module", "-e"];
  const env = { ...process.env, NO_COLOR: "1" };
  const printed = execFileSync(process.execPath, [...flags, code], { cwd, env, encoding: "utf8" });
  return Number(printed.trim().split("\n").at(-1));
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

const app = mkdtempSync(join(tmpdir(), "plue-import-"));
try {
  install(app);
  const hasPeers = existsSync(join(PEERS, "node_modules"));
  if (!hasPeers) console.log("The peers are omitted (npm ci in bench/peers installs them)");
  const imports = [
    ...PLUE.map((specifier) => ({ specifier, cwd: app, times: [] as number[] })),
    ...(hasPeers ? OTHERS : []).map((specifier) => ({
      specifier,
      cwd: PEERS,
      times: [] as number[],
    })),
  ];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { specifier, cwd, times } of imports) {
      const ms = measure(specifier, cwd);
      if (round > 0) times.push(ms);
    }
  }
  const [own = Number.NaN] = imports.map(({ times }) => median(times));
  console.log(
    table(
      ["import", "median, ms", "fastest", "by @plue/tools"],
      imports.map(({ specifier, times }) => [
        specifier,
        median(times).toFixed(1),
        Math.min(...times).toFixed(1),
        (median(times) / own).toFixed(2),
      ]),
    ),
  );
} finally {
  rmSync(app, { recursive: true, force: true });
}
