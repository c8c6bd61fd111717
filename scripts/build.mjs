// `npm run build`: bundles the library and the command `plue` into dist/ for npm. JSR receives the
// unchanged sources. Usage: node scripts/build.mjs [folder]

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { bundleLibrary } from "./lib/library.mjs";
import { licencesOf } from "./lib/licences.mjs";
import { ROOT } from "./lib/paths.mjs";
import { attach, fail } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const outDir = resolve(process.argv[2] ?? join(ROOT, "dist"));
rmSync(outDir, { recursive: true, force: true });
mkdirSync(outDir, { recursive: true });
const modules = await bundleLibrary(outDir);
const files = modules.map((id) => relative(ROOT, id));
const licences = licencesOf("The library contains these packages.", files, ROOT);
writeFileSync(join(outDir, "LICENSES.txt"), licences);
const { missing } = (await setup({ serving: true })).get("bun");
if (missing !== undefined) fail(`Cannot bundle the command: ${missing}`);
process.exitCode = await attach("bun", ["scripts/build_cli.ts", outDir]);
