/** Shared code of the native tests: paths, builds, and runs of programs. */

import { assertEquals } from "@std/assert";
import { afterAll } from "bun:test";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { maybe } from "../support/skip.ts";

/** The folder of the repository. */
export const ROOT: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** The output folder of `make`. */
export const BUILD: string = join(ROOT, "ffi", "build");
/** The folder of the built test programs. */
export const PROGRAMS: string = join(BUILD, "test");
/** The shared library, under the name that programs load. */
export const SHARED_LIBRARY: string = join(
  BUILD,
  process.platform === "darwin" ? "libplue.1.dylib" : "libplue.so.1",
);
/** Bundles of code that many processes load. A bundle starts much faster than its sources. */
const bundled = process.env["PLUE_TEST_BUNDLES"]; // by another test file of this process
export const BUNDLES: string = bundled ?? join(PROGRAMS, `bundles-${process.pid}`);
if (bundled === undefined) {
  const entrypoints = [
    join(ROOT, "ffi", "sidecar", "main.ts"),
    ...[
      "tools",
      "code_sidecar",
      "guest",
      "worker_guest",
      "attach_errors",
      "modules/loud",
      "modules/stray",
    ]
      .map((name) => join(ROOT, "test", "native", `${name}.ts`)),
  ];
  await Bun.build({ entrypoints, target: "node", naming: "[name].mjs", outdir: BUNDLES });
  process.env["PLUE_TEST_BUNDLES"] = BUNDLES;
}
/** The module of tools that the tests in C call. */
export const TOOLS: string = join(BUNDLES, "tools.mjs");
/** The environment of a host whose tools are in C. */
export const WITH_FAKE = { PLUE_SIDECAR: join(PROGRAMS, "fake_sidecar") } as const;
/** The duration of the long tests, in seconds: `npm run test:soak` sets it. */
export const SOAK = Number(process.env["PLUE_SOAK"] ?? 0);

/** The tests of libplue in C, built as a library. */
export const SUITE_LIBRARY: string = join(
  PROGRAMS,
  process.platform === "darwin" ? "libsuite.dylib" : "libsuite.so",
);

/** The functions that libplue exports, sorted, from its linker script. */
export function exportedSymbols(): string[] {
  const text = fs.readFileSync(join(ROOT, "ffi", "plue.map"), "utf8");
  return [...text.matchAll(/^ +(plue_\w+);$/gm)].map(([, name = ""]) => name).sort();
}

/** The cases that all languages run. */
const CONTRACT = join(ROOT, "ffi", "test", "contract.txt");

const PATH = `${join(ROOT, "scripts", "runtimes", "bin")}:${process.env["PATH"] ?? ""}`;

/** The command of each runtime, to which a script is appended. */
export const RUNTIMES: { readonly [name: string]: readonly string[] } = {
  bun: ["bun"],
  deno: [
    "deno",
    "run",
    "--allow-all",
    "--no-check",
    "--no-config",
    `--import-map=${join(ROOT, "deno.json")}`,
    "--node-modules-dir=manual",
  ],
  node: ["node", "--disable-warning=ExperimentalWarning"],
};

/** The parts of the tests in C that every runtime passes in both hostings, in about a second. */
export const PARTS = "basic contract tools questions notices big:2000000 streaming abort " +
  "metadata:500 stress:8:200:echo grace";
/** Parts that test the library alone, or with larger numbers, on one runtime in each hosting. */
export const MORE_PARTS = "submit big:32000000 shared:10 metadata:5000 race:100 cancellation " +
  `stress:8:${SOAK > 0 ? 20_000 : 1_000}:echo`;

/** A folder that exists until the tests of the calling file have ended. */
export function temporaryFolder(name: string): string {
  const folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), `plue-${name}-`)));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a program that runs a command, because `$PLUE_SIDECAR` is the path of a single file. */
export function program(file: string, command: readonly string[]): string {
  fs.writeFileSync(file, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(" ")}\n`);
  fs.chmodSync(file, 0o755);
  return file;
}

/** Makes a program of the sidecar on a runtime. */
export function sidecarOn(runtime: string, folder: string, name = "main"): string {
  const command = [...RUNTIMES[runtime] ?? [], join(BUNDLES, `${name}.mjs`)];
  return program(join(folder, `${name}-on-${runtime}`), command);
}

/** True if a program is on the path. */
export function hasProgram(name: string): boolean {
  return PATH.split(":").some((folder) => fs.existsSync(join(folder, name)));
}

/** Runs `make` in `ffi`, with a lock because several test files do so. A warning is an error. */
export function make(...args: readonly string[]): void {
  const command = ["make", "-C", join(ROOT, "ffi"), "WERROR=-Werror", ...args];
  if (hasProgram("flock")) {
    command.unshift("flock", join(ROOT, "ffi", "Makefile"));
  }
  const [program = "", ...rest] = command;
  const { status, stderr } = spawnSync(program, rest, {
    encoding: "utf8",
    env: { ...process.env, PATH },
  });
  if (status !== 0) {
    throw new Error(`make ${args.join(" ")} failed:\n${stderr}`);
  }
}

/** Returns the reason if there is no compiler, or another program is missing. */
export function lackOf(...programs: readonly string[]): string | undefined {
  const missing = ["cc", "make", ...programs].find((program) => !hasProgram(program));
  return missing === undefined ? undefined : `there is no ${missing}`;
}

/** Returns the reason if an empty program cannot be compiled with the sanitizer. */
export function lackOfSanitizer(
  name: string,
  compiler = "cc",
  source = "int main(void) { return 0; }\n",
): string | undefined {
  const lack = lackOf(compiler);
  if (lack !== undefined) return lack;
  const folder = temporaryFolder("sanitizer");
  const [file, program] = [join(folder, "empty.c"), join(folder, "empty")];
  fs.writeFileSync(file, source);
  const isBuilt = spawnSync(compiler, [`-fsanitize=${name}`, file, "-o", program]).status === 0;
  const isSound = isBuilt && (name.includes("fuzzer") || spawnSync(program).status === 0);
  return isSound ? undefined : `the compiler has no -fsanitize=${name} here`;
}

/** Builds the native programs. Returns the reason if that is not possible. */
export function buildPrograms(): string | undefined {
  const reason = lackOf();
  if (reason === undefined) make("-j2", "all", "test-programs");
  return reason;
}

/**
 * Declares a test. If there is a reason not to run it, skips it and adds the reason to its title.
 */
export function unless(reason: string | undefined): ReturnType<typeof maybe> {
  return maybe(reason === undefined, reason ?? "");
}

/** Programs of a variant of the library that the tests run. */
const VARIANT = ["suite", "fake_guest", "edge", "units", "seam", "fuzz", "process"];

/**
 * Builds the library and test programs with a setting of `make`. Compiling them takes half a minute,
 * so they are cached by the contents of all their sources.
 *
 * @returns The programs' folder.
 */
export function buildVariant(name: string, setting: string): string {
  const ffi = join(ROOT, "ffi");
  const hash = createHash("sha256").update(setting + spawnSync("cc", ["--version"]).stdout);
  const amalgamate = join(ROOT, "scripts", "amalgamate.mjs");
  for (const file of [join(ffi, "Makefile"), amalgamate]) hash.update(fs.readFileSync(file));
  for (const folder of ["src", "include", "test"]) {
    for (
      const file of fs.readdirSync(join(ffi, folder)).filter((name) => /\.[ch]$/.test(name)).sort()
    ) {
      hash.update(`${file}\n`).update(fs.readFileSync(join(ffi, folder, file)));
    }
  }
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "plue", "native");
  const kept = join(cache, `${name}-${hash.digest("hex").slice(0, 16)}`);
  if (!fs.existsSync(kept)) {
    // Under another name until it is complete, because another run may build the same variant.
    const build = `${kept}.${process.pid}`;
    fs.mkdirSync(cache, { recursive: true });
    for (const old of fs.readdirSync(cache).map((entry) => join(cache, entry))) {
      if (Date.now() - fs.statSync(old).mtimeMs > KEPT_MS) fs.rmSync(old, { recursive: true });
    }
    const files = VARIANT.map((program) => join(build, "test", program));
    // The sources are in one file, because the compiler takes longer to start than to compile.
    const sources = join(build, "src");
    spawnSync("node", [amalgamate, sources], { env: { ...process.env, PATH } });
    // Sanitizers add code that causes false warnings, so warnings are not errors here.
    const warnings = setting.startsWith("SANITIZE") ? ["WERROR="] : [];
    const flags = ["CFLAGS=-O1 -g1", "TEST_CFLAGS=", "WARNINGS=-Wall -Wextra -Wpedantic"];
    const places = [`BUILD=${build}`, `SRC=${sources}`];
    make("-j2", ...places, setting, ...flags, ...warnings, "all", ...files);
    if (fs.existsSync(kept)) fs.rmSync(build, { recursive: true });
    else fs.renameSync(build, kept);
  }
  return join(kept, "test");
}

/** The lifetime of a cached variant. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;

/** Installs koffi, which Node needs, in this folder. Returns the reason if that is not possible. */
export function installKoffi(): string | undefined {
  const folder = join(ROOT, "test", "native");
  if (fs.existsSync(join(folder, "node_modules", "koffi"))) return undefined;
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: "ignore",
    env: { ...process.env, PATH },
  });
  return status === 0 ? undefined : "koffi cannot be installed in test/native";
}

/** The end of a program. */
export interface Outcome {
  /** The exit code; `undefined` if a signal ended the program. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: { readonly [name: string]: string };
  /** The time limit of a program: far more than a busy machine needs. */
  readonly limitMs?: number;
  readonly cwd?: string;
}

const LIMIT_MS = 120_000 + SOAK * 1_000;

/** The time limit of programs that compile, install, or run under a sanitizer or valgrind. */
export const LONG_LIMIT_MS: number = LIMIT_MS + 360_000;

/** Returns a process and its descendants. Without a list of the system, returns the process. */
function family(id: number): number[] {
  try {
    const folder = `/proc/${id}/task`;
    const lists = fs.readdirSync(folder)
      .map((thread) => fs.readFileSync(join(folder, thread, "children"), "utf8"));
    const children = lists.join(" ").split(" ").filter((child) => child !== "").map(Number);
    return [id, ...children.flatMap(family)];
  } catch {
    return [id];
  }
}

/** Runs a program to its end. If the program hangs, ends it with all processes that it started. */
export function run(
  [command = "", ...args]: readonly string[],
  { env = {}, limitMs = LIMIT_MS, cwd = ROOT }: RunOptions = {},
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, PATH, PLUE_CONTRACT: CONTRACT, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let stdout = "";
    let stderr = "";
    const timer = setTimeout(() => {
      if (child.pid === undefined) return;
      stderr += `\nstopped: it ran longer than ${limitMs} ms`;
      for (const id of family(child.pid)) kill(id);
      kill(-child.pid);
      // A process outside the family and the group would keep the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    }, limitMs);
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code: code ?? undefined, stdout, stderr });
    });
  });
}

/** Kills a process, or a group of them, that may be gone. */
function kill(id: number): void {
  try {
    process.kill(id, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** The output of a program, for the message of a failed assertion. */
export function outputOf({ code, stdout, stderr }: Outcome): string {
  return `exit code ${code}\n${stdout.slice(-4_000)}\n${stderr.slice(-12_000)}`;
}

/** Runs a program that must succeed, and returns its output. */
export async function succeed(
  command: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const outcome = await run(command, { limitMs: LONG_LIMIT_MS, ...options });
  assertEquals(outcome.code, 0, `${command.join(" ")}: ${outputOf(outcome)}`);
  return outcome.stdout;
}

/** Runs shell commands that must succeed, and returns their output. */
export function shell(lines: string, options: RunOptions = {}): Promise<string> {
  return succeed(["sh", "-ec", lines], options);
}
