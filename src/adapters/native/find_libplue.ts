/** Finds the installed libplue, and the compiler and linker flags for it. */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { attemptOr } from "../../tool/mod.ts";

/** Options for {@linkcode findLibplue}. */
export interface FindLibplueOptions {
  /**
   * The platform to compile for: `linux-x64`, `linux-arm64-musl`, `darwin-arm64`, …
   *
   * @default This machine's.
   */
  readonly target?: string | undefined;
  /** The path or URL of the file from which the package is resolved. @default This module. */
  readonly from?: string | URL | undefined;
}

/** The files of a libplue, as absolute paths, and the flags to compile and link with it. */
export interface Libplue {
  /** The platform of the library, such as `linux-x64`. */
  readonly target: string;
  /** The path of the shared library, for `dlopen()` and {@linkcode attachNative}. */
  readonly library: string;
  /** The static library. */
  readonly archive: string;
  /** The program or script in the same folder that runs the tools; `undefined` if there is none. */
  readonly sidecar: string | undefined;
  /** The compiler's flags for `plue.h`. */
  readonly cflags: readonly string[];
  /** The linker's flags, with the path at which the program finds the library when it starts. */
  readonly libs: readonly string[];
  /** The linker's flags to link the library statically. */
  readonly staticLibs: readonly string[];
}

/**
 * Finds the libplue of the package `@plue/native`, which npm installs for the platform as
 * `@plue/native-<platform>`, or else the files that `plue native` or `make` has compiled in
 * `@plue/native`.
 *
 * @example Usage
 * ```ts ignore
 * import { findLibplue } from "@plue/tools/native";
 *
 * const { cflags, libs } = findLibplue();
 * console.log(["cc", "host.c", "-o", "host", ...cflags, ...libs].join(" "));
 * ```
 *
 * @throws {Error} If libplue is not installed for that platform. The message has the command that installs it.
 */
export function findLibplue(options: FindLibplueOptions = {}): Libplue {
  const { target, from = import.meta.url } = options;
  const targets = target === undefined ? ownTargets() : [target];
  const ffi = sourceFolder(from);
  for (const name of targets) {
    // Only the package `@plue/native` finds the package of the platform with some package managers.
    const places = ffi === undefined ? [from] : [from, join(ffi, "package.json")];
    const [prefix] = places.flatMap((place) => packageFolder(`@plue/native-${name}`, place) ?? []);
    if (prefix !== undefined) return libplueIn(name, join(prefix, "include"), join(prefix, "lib"));
  }
  const [own = ""] = ownTargets();
  if (target === undefined || target === own) {
    if (ffi !== undefined && existsSync(join(ffi, "build", "libplue.a"))) {
      return libplueIn(own, join(ffi, "include"), join(ffi, "build"));
    }
  }
  throw new Error(notFoundMessage(targets[0] ?? own, target !== undefined));
}

function notFoundMessage(target: string, isExplicit: boolean): string {
  const [os, cpu, libc = "glibc"] = target.split("-");
  const platform = `--os=${os} --cpu=${cpu}` + (os === "linux" ? ` --libc=${libc}` : "");
  const command = isExplicit
    ? `"npm install @plue/native ${platform}" without --omit=optional`
    : '"npm install @plue/native" without --omit=optional, then "npx @plue/cli native", which can compile it';
  return `Cannot find libplue for ${target}: the package "@plue/native-${target}" is not installed; ` +
    `run ${command}`;
}

/** The platforms whose library this machine can load, the likeliest first. */
function ownTargets(): readonly string[] {
  const target = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return [target];
  // npm may install the packages for glibc and musl, because a registry may omit the field "libc".
  const loaders = ["/lib", "/lib64"].filter(existsSync).flatMap((folder) => readdirSync(folder));
  const isMusl = loaders.some((name) => name.startsWith("ld-musl-")) &&
    !loaders.some((name) => name.startsWith("ld-linux-"));
  const musl = `${target}-musl`;
  return isMusl ? [musl] : [target, musl];
}

function packageFolder(name: string, from: string | URL): string | undefined {
  const manifest = `${name}/package.json`;
  return attemptOr(undefined, () => dirname(createRequire(from).resolve(manifest)));
}

/** The folder with the sources of libplue: the package `@plue/native`, or `ffi` in a clone. */
function sourceFolder(from: string | URL): string | undefined {
  const clone = new URL("../../../ffi/", import.meta.url);
  const folder = packageFolder("@plue/native", from) ??
    (clone.protocol === "file:" ? fileURLToPath(clone) : "");
  return existsSync(join(folder, "include", "plue.h")) ? folder : undefined;
}

/**
 * Finds libplue for this machine. If npm has installed none, compiles libplue from the sources in
 * the package `@plue/native`, which do not depend on the platform.
 *
 * @param from The path of a file of the app, which has installed the package.
 * @param report Called with a line before libplue is compiled, which takes seconds.
 * @throws {Error} If there are no sources, `make` or compiler.
 */
export function findOrCompileLibplue(from: string, report: (line: string) => void): Libplue {
  try {
    return findLibplue({ from });
  } catch (cause) {
    const folder = sourceFolder(from);
    if (folder === undefined) throw cause;
    report(`Compiling libplue in ${folder}`);
    const { status, stderr, error } = spawnSync("make", ["-s", "-C", folder], { encoding: "utf8" });
    if (status === 0) return findLibplue({ from });
    const why = error === undefined ? stderr.trim() : "it needs make and a C compiler";
    throw new Error(`Cannot compile libplue in ${folder}: ${why}`, { cause });
  }
}

function libplueIn(target: string, include: string, lib: string): Libplue {
  const isMac = target.startsWith("darwin");
  const archive = join(lib, "libplue.a");
  return {
    target,
    library: join(lib, isMac ? "libplue.1.dylib" : "libplue.so.1"),
    archive,
    sidecar: ["plue-sidecar", "plue-sidecar.js"].map((name) => join(lib, name)).find(existsSync),
    cflags: [`-I${include}`],
    libs: [`-L${lib}`, "-lplue", `-Wl,-rpath,${lib}`],
    staticLibs: [archive, "-pthread", ...(isMac ? [] : ["-ldl"])],
  };
}
