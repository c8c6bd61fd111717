/** An app with the packed library and its peers. It is built once for all tests of a process. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { maybe } from "../support/skip.ts";

/** The project's folder. */
export const ROOT: string = join(import.meta.dirname, "../..");

/** The specifiers of the entries. */
export const SPECIFIERS: readonly string[] = Object.keys(manifest.exports)
  .filter((entry) => !entry.includes("*"))
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
/** The packages that were packed, by the folders of their files. */
export const PACKED: readonly string[] = ["tools", "cli", "nats", "native"];
/** The app with the package and its peers. */
export const app: string = join(packed, "app");
/** The package in the app. */
export const home: string = join(app, "node_modules", manifest.name);

/** The folder of a package of the project, before it was packed. */
export function stagedAt(name: string): string {
  return join(packed, name);
}

/** The tarball of a package of the project. */
export function tarballOf(name: string): string {
  return join(packed, readdirSync(packed).find((file) => file.startsWith(`plue-${name}-`)) ?? "");
}

/** Creates an app with packages of the project, and links to packages of others. */
export function createApp(
  name: string,
  packages: readonly string[],
  own: readonly string[] = ["tools"],
): string {
  const folder = join(packed, name);
  for (const one of own) {
    const home = join(folder, "node_modules", "@plue", one);
    mkdirSync(home, { recursive: true });
    run("tar", ["-xzf", tarballOf(one), "-C", home, "--strip-components=1"], packed);
  }
  for (const one of packages) {
    const place = join(folder, "node_modules", one);
    // A scoped name is a folder in a folder.
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", one), place);
  }
  const fields = { type: "module", private: true, scripts: { test: "node readme.mjs" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(fields));
  return folder;
}

/** Creates an app with the command, and returns the path of its program. */
export function createCommand(name: string): string {
  const { dependencies, bin } = JSON.parse(
    readFileSync(join(stagedAt("cli"), "package.json"), "utf8"),
  );
  const others = Object.keys(dependencies).filter((one) => one !== manifest.name);
  const folder = createApp(name, others, ["tools", "cli"]);
  return join(folder, "node_modules/@plue/cli", bin.plue);
}

if (isBuilt) {
  run("node", ["scripts/build_packages.mjs", "--out", packed, "--only", PACKED.join()], ROOT);
  createApp("app", [...Object.keys(manifest.peerDependencies), "typebox"]);
}
