// `npm run build`: compiles the sources into dist/ for npm, and bundles the command `plue` into
// dist/cli.js. JSR takes the sources as they are.
// Usage: node scripts/build.mjs [folder]

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { spawnSync } from "node:child_process";
import { ROOT } from "./lib/paths.mjs";
import { attach } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const outDir = resolve(process.argv[2] ?? join(ROOT, "dist"));
rmSync(outDir, { recursive: true, force: true });
const { status } = spawnSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--outDir", outDir],
  { cwd: ROOT, stdio: "inherit" },
);
process.exitCode = status ?? 1;
if (process.exitCode === 0) {
  for (const name of readdirSync(outDir, { recursive: true })) {
    if (name.endsWith(".d.ts")) declareDisposal(join(outDir, name));
  }
  const { missing } = setup({ serving: true }).get("bun");
  if (missing !== undefined) console.error(`Cannot bundle the command: ${missing}`);
  process.exitCode = missing === undefined
    ? await attach("bun", ["scripts/build_cli.ts", outDir])
    : 1;
}

/**
 * Names the library that has `AsyncDisposable`, so that declarations compile where only that of
 * es2023 is set. The sources cannot: JSR refuses such lines.
 */
function declareDisposal(file) {
  const text = readFileSync(file, "utf8");
  if (!/asyncDispose|AsyncDisposable/.test(text)) return;
  writeFileSync(file, `/// <reference lib="esnext.disposable" />\n${text}`);
  const map = JSON.parse(readFileSync(`${file}.map`, "utf8"));
  // A semicolon stands for the new line.
  writeFileSync(`${file}.map`, JSON.stringify({ ...map, mappings: `;${map.mappings}` }));
}
