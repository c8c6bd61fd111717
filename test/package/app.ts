/** An app with the packed package and its peers. It is built once for all tests of the package. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { maybe } from "../support/skip.ts";

/** The project's folder. */
export const ROOT: string = join(import.meta.dirname, "../..");

/** The specifiers of the entries. */
export const SPECIFIERS: readonly string[] = Object.keys(manifest.exports)
  .map((entry) => entry.replace(".", manifest.name));

/** Runs a program, and returns what it prints on its standard output. */
export function run(
  command: string,
  args: readonly string[],
  cwd: string = app,
  env: NodeJS.ProcessEnv = process.env,
): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env,
    encoding: "utf8",
  });
  if (status === 0) return stdout;
  const output = `${stdout}${stderr}`;
  throw new Error(`Cannot run ${command} ${args.join(" ")}: ${output}`, { cause: error });
}

/** Returns true if the program can be started. */
function canRun(command: string): boolean {
  return command !== "" && spawnSync(command, ["--version"]).status === 0;
}

const isBuilt = canRun("npm") && canRun("node") &&
  existsSync(join(ROOT, "node_modules/typescript/bin/tsc"));

/** A test that needs the package, and a program. */
export function testWith(
  command: string = "node",
  name: string = command,
): ReturnType<typeof maybe> {
  return maybe(isBuilt && canRun(command), `npm, its packages and ${name} are not all here`);
}

const packed = mkdtempSync(join(tmpdir(), "plue-package-"));
process.on("exit", () => rmSync(packed, { recursive: true, force: true }));
/** The folder that was packed. */
export const staged: string = join(packed, "tools");
/** The app with the package and its peers. */
export const app: string = join(packed, "app");
/** The package in the app. */
export const home: string = join(app, "node_modules", manifest.name);

/** Creates an app with the package and links to other packages of the project. */
export function createApp(name: string, packages: readonly string[]): string {
  const folder = join(packed, name);
  const home = join(folder, "node_modules", manifest.name);
  mkdirSync(home, { recursive: true });
  const tarball = readdirSync(packed).find((file) => file.endsWith(".tgz")) ?? "";
  run("tar", ["-xzf", join(packed, tarball), "-C", home, "--strip-components=1"], packed);
  for (const one of packages) {
    const place = join(folder, "node_modules", one);
    // A scoped name is a folder in a folder.
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", one), place);
  }
  const own = { type: "module", private: true, scripts: { test: "node readme.mjs" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(own));
  return folder;
}

if (isBuilt) {
  run("node", ["scripts/build_packages.mjs", "--out", packed, "--only", "tools"], ROOT);
  createApp("app", [...Object.keys(manifest.peerDependencies), "typebox"]);
}
