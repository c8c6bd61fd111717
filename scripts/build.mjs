// `npm run build`: compiles the sources into dist/ for npm. JSR takes the sources as they are.
// Usage: node scripts/build.mjs [folder]

import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { spawnSync } from "node:child_process";
import { ROOT } from "./lib/paths.mjs";

const outDir = resolve(process.argv[2] ?? join(ROOT, "dist"));
rmSync(outDir, { recursive: true, force: true });
const { status } = spawnSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--outDir", outDir],
  { cwd: ROOT, stdio: "inherit" },
);
process.exitCode = status ?? 1;
