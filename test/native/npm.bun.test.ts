// libplue as npm installs it: packed for every platform, installed from a registry, linked with
// programs, and run on the platforms of this machine.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { findZig } from "../../scripts/setup.mjs";
import { findLibplue, type Libplue } from "../../src/adapters/native/mod.ts";
import {
  buildPrograms,
  hasProgram,
  lackOf,
  outputOf,
  ROOT,
  run,
  shell,
  SOAK,
  succeed,
  temporaryFolder,
  unless,
  WITH_FAKE,
} from "./support.ts";

/** The platforms: Zig's name, and the names for npm. */
const PLATFORMS: { readonly [name: string]: readonly [zig: string, npm: readonly string[]] } = {
  "linux-x64": ["x86_64-linux-gnu.2.28", ["--os=linux", "--cpu=x64", "--libc=glibc"]],
  "linux-arm64": ["aarch64-linux-gnu.2.28", ["--os=linux", "--cpu=arm64", "--libc=glibc"]],
  "linux-x64-musl": ["x86_64-linux-musl", ["--os=linux", "--cpu=x64", "--libc=musl"]],
  "linux-arm64-musl": ["aarch64-linux-musl", ["--os=linux", "--cpu=arm64", "--libc=musl"]],
  "darwin-x64": ["x86_64-macos", ["--os=darwin", "--cpu=x64"]],
  "darwin-arm64": ["aarch64-macos", ["--os=darwin", "--cpu=arm64"]],
};

/** The tests let npm select these platforms. The manifests of the others have the same fields. */
const SELECTED = ["linux-arm64-musl", "darwin-x64"];

const ARM_LIBRARIES = "/usr/aarch64-linux-gnu";
const isLinux = process.platform === "linux" && process.arch === "x64";
const hasQemu = hasProgram("qemu-aarch64");
const hasArm = hasQemu &&
  existsSync(`${ARM_LIBRARIES}/lib/ld-linux-aarch64.so.1`);
const hasMusl = existsSync("/lib/ld-musl-x86_64.so.1");

const RUNS_ARM = hasArm
  ? ["qemu-aarch64", "-L", ARM_LIBRARIES]
  : "qemu-user and libc6-arm64-cross are not here";

/** The command that runs a program of a platform here, or the reason why there is none. */
const RUNS: { readonly [name: string]: readonly string[] | string } = {
  "linux-x64": [],
  "linux-arm64": RUNS_ARM,
  "linux-x64-musl": hasMusl ? [] : "musl is not here",
  "linux-arm64-musl": "musl for arm64 is not here",
  "darwin-x64": "this is not macOS",
  "darwin-arm64": "this is not macOS",
};

const folder = temporaryFolder("npm");
const packages = join(folder, "packages");
const app = join(folder, "app");
const inApp = { cwd: app };
const zig = isLinux ? await findZig() : { missing: "the packages are built on Linux on x64" };
const lacks = zig.missing ?? buildPrograms() ?? lackOf("npm", "bun", "tar");
const test = unless(lacks);

/** Packs a package of others, which this project has installed. */
async function packInstalled(name: string): Promise<string> {
  const file = join(packages, `${name.replace("/", "-")}.tgz`);
  if (!existsSync(file)) {
    const options = `--exclude=${name}/node_modules --transform=s,^${name},package,`;
    await shell(`tar -czf ${file} ${options} -C ${join(ROOT, "node_modules")} ${name}`);
  }
  return file;
}

/** The tarball of a package; `undefined` if there is none. */
async function tarballOf(name: string, hasNative: boolean): Promise<string | undefined> {
  if (!name.startsWith("@plue/")) {
    return existsSync(join(ROOT, "node_modules", name)) ? await packInstalled(name) : undefined;
  }
  if (!hasNative && name.startsWith("@plue/native-")) return undefined;
  const start = `${name.slice(1).replace("/", "-")}-`;
  const file = fs.readdirSync(packages).find((one) =>
    one.startsWith(start) && /^\d/.test(one.slice(start.length))
  );
  return file && join(packages, file);
}

/** Serves tarballs like a registry, with or without libplue's tarballs. */
function serveTarballs(hasNative: boolean): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    async fetch({ url }) {
      const { origin, pathname } = new URL(url);
      if (pathname.endsWith(".tgz")) {
        return new Response(Bun.file(join(packages, basename(pathname))));
      }
      const path = await tarballOf(decodeURIComponent(pathname.slice(1)), hasNative);
      if (path === undefined) return new Response("{}", { status: 404 });
      const { stdout } = Bun.spawnSync(["tar", "-xzOf", path, "package/package.json"]);
      const manifest = JSON.parse(stdout.toString());
      const integrity = `sha512-${
        createHash("sha512").update(fs.readFileSync(path)).digest("base64")
      }`;
      const dist = { tarball: `${origin}/-/${basename(path)}`, integrity };
      return Response.json({
        name: manifest.name,
        "dist-tags": { latest: manifest.version },
        versions: { [manifest.version]: { ...manifest, dist } },
      });
    },
  });
}

/** The packages of a host in C: the library of its tools, the command and libplue. */
const ALL = "@plue/tools @plue/cli @plue/native";

let registry: Bun.Server<undefined> | undefined;

/** Installs packages into an empty folder, as npm would on a platform. */
async function install(
  into: string,
  names: string,
  platform: readonly string[] = [],
): Promise<string[]> {
  mkdirSync(into, { recursive: true });
  // The manifest that `npm init` writes.
  fs.writeFileSync(join(into, "package.json"), '{ "private": true, "type": "commonjs" }');
  const options = `--ignore-scripts --no-audit --no-fund --cache=${join(folder, "cache")}`;
  const line = ["npm install", names, ...platform, options, `--registry=${registry?.url}`];
  await shell(line.join(" "), { cwd: into });
  return fs.readdirSync(join(into, "node_modules", "@plue")).sort();
}

beforeAll(async () => {
  if (lacks !== undefined) return;
  await succeed(["node", "scripts/build_packages.mjs", "--out", packages]);
  registry = serveTarballs(true);
  await install(app, ALL);
});
afterAll(() => registry?.stop(true));

describe("npm install @plue/native", () => {
  for (const [name, [, options]] of Object.entries(PLATFORMS)) {
    test(`installs the libplue of ${name}, and no other`, async () => {
      const manifest = JSON.parse(fs.readFileSync(join(packages, name, "package.json"), "utf8"));
      const fields = ["os", "cpu", "libc"].filter((field) => manifest[field] !== undefined);
      assertEquals(fields.map((field) => `--${field}=${manifest[field]}`), [...options]);
      const into = join(folder, `install-${name}`);
      if (SELECTED.includes(name)) {
        const installed = await install(into, "@plue/native", options);
        assertEquals(installed, ["native", `native-${name}`, "tools"]);
      } else {
        mkdirSync(join(into, "node_modules", "@plue"), { recursive: true });
        fs.symlinkSync(join(packages, name), join(into, "node_modules", "@plue", `native-${name}`));
      }
    });
  }

  test("contains the files that findLibplue() returns", () => {
    const { library, archive, sidecar } = findLibplue({ from: join(app, "host.mjs") });
    assertEquals([library, archive, sidecar].filter((file) => !existsSync(file ?? "")), []);
  });

  test("installs no binary of JavaScript", () => {
    const files = fs.readdirSync(join(packages, "linux-x64"), {
      recursive: true,
      encoding: "utf8",
    });
    assertEquals(files.sort(), [
      "LICENSE",
      "README.md",
      "include",
      "include/CPlue",
      "include/CPlue/module.modulemap",
      "include/plue.h",
      "include/plue.hpp",
      "lib",
      "lib/cmake",
      "lib/cmake/plue",
      "lib/cmake/plue/plue-config-version.cmake",
      "lib/cmake/plue/plue-config.cmake",
      "lib/libplue.a",
      "lib/libplue.so",
      "lib/libplue.so.1",
      "lib/pkgconfig",
      "lib/pkgconfig/plue.pc",
      "lib/plue-sidecar.js",
      "package.json",
    ]);
  });
});

/** The libplue that npm installed for a platform. */
function installed(name: string): Libplue {
  return findLibplue({ target: name, from: join(folder, `install-${name}`, "host.mjs") });
}

describe("a host in C", () => {
  const source = join(ROOT, "ffi", "examples", "host.c");

  /** The part of the README that npm installed. */
  function fromNpm(): string {
    const readme = join(app, "node_modules", "@plue", "native", "README.md");
    return fs.readFileSync(readme, "utf8").split("\n## From npm\n")[1] ?? "";
  }

  /** Writes the module of tools of the README, and runs its lines, with another one for npm. */
  async function followReadme(cwd: string, npm: string): Promise<void> {
    const [, tools = ""] = /```ts\n([^]*?)```/.exec(fromNpm()) ?? [];
    const [, lines = ""] = /```sh\n([^]*?)```/.exec(fromNpm()) ?? [];
    fs.writeFileSync(join(cwd, "tools.mts"), tools);
    assertStringIncludes(tools, "export const registry");
    assertStringIncludes(lines, `npm install ${ALL}`);
    const own = lines.replace(/^npm install .*$/m, () => npm);
    const output = await shell(own, { cwd, env: { CFLAGS: "-O0" } });
    assertStringIncludes(output, 'result: {"message":"hello"}');
  }

  test("is built and run by the lines of ffi/README.md", () => followReadme(app, ""));

  test("is built and run by the same lines if npm has no package of the platform", async () => {
    const alone = join(folder, "alone");
    mkdirSync(alone);
    const others = serveTarballs(false);
    const options = `--no-audit --no-fund --cache=${join(folder, "cache-alone")}`;
    await followReadme(alone, `npm install ${ALL} --registry=${others.url} ${options}`);
    await others.stop(true);
    const own = fs.readdirSync(join(alone, "node_modules", "@plue"));
    assertEquals(own.sort(), ["cli", "native", "tools"]);
  });

  test("is linked statically by the lines of ffi/README.md, and finds its tools", async () => {
    const [, item = ""] = /\n- To link statically: ([^]*?)\n- /.exec(fromNpm()) ?? [];
    const lines = [...item.matchAll(/`((?:cc|cp) [^`]*)`/g)].map(([, line]) => line);
    assertEquals(lines.length, 2, item);
    const cwd = join(app, "statically");
    mkdirSync(cwd);
    for (const name of ["node_modules", "host.c", "package.json"]) {
      fs.symlinkSync(join(app, name), join(cwd, name));
    }
    const env = { PLUE_TOOLS: join(app, "tools.mts") };
    assertStringIncludes(
      await shell([...lines, "./host echo"].join("\n"), { cwd, env }),
      "result: {}",
    );
  });

  test("runs its tools in Node if Bun is not installed", async () => {
    const bin = join(folder, "bin");
    mkdirSync(bin);
    fs.symlinkSync((await shell("command -v node")).trim(), join(bin, "node"));
    const env = { PATH: bin, PLUE_TOOLS: join(app, "tools.mts") };
    const outcome = await run(["/bin/sh", "-ec", 'exec "$@"', "sh", join(app, "host"), "echo"], {
      env,
    });
    assertStringIncludes(outcome.stdout, "result: {}", outputOf(outcome));
  });

  test("runs with the sidecar that ffi/README.md compiles, which contains its tools", async () => {
    const readme = fs.readFileSync(join(ROOT, "ffi", "README.md"), "utf8");
    const [, code = "", line = ""] =
      /```ts\n(\/\/ my-sidecar\.ts[^]*?)```\n\n```sh\n([^]*?)```/.exec(readme) ?? [];
    fs.writeFileSync(join(app, "my-sidecar.ts"), code);
    const [, file = ""] = /--outfile (\S+)/.exec(line) ?? [];
    await shell(line, inApp);
    const env = { PLUE_SIDECAR: join(app, file) };
    const output = await shell(`./host echo '{"message":"compiled"}'`, { ...inApp, env });
    assertStringIncludes(output, 'result: {"message":"compiled"}');
  });

  const prefix = join(app, "node_modules", "@plue", "native-linux-x64");

  unless(lacks ?? lackOf("pkg-config"))("is linked by pkg-config", async () => {
    const env = { PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig"), ...WITH_FAKE };
    const flags = "$(pkg-config --cflags --libs plue)";
    const rpath = "-Wl,-rpath,$(pkg-config --variable=libdir plue)";
    await shell(`cc ${source} -o by_pc ${flags} ${rpath} && ./by_pc`, { ...inApp, env });
  });

  unless(lacks ?? lackOf("cmake"))("is linked by CMake", async () => {
    fs.writeFileSync(
      join(app, "CMakeLists.txt"),
      `cmake_minimum_required(VERSION 3.16)
project(host C)
find_package(plue 0.1 REQUIRED)
add_executable(by_cmake ${source})
target_link_libraries(by_cmake plue::plue)
`,
    );
    const lines = `cmake -S . -B build -DCMAKE_PREFIX_PATH=${prefix}
      cmake --build build
      build/by_cmake`;
    await shell(lines, { ...inApp, env: WITH_FAKE });
  });

  /** Otherwise Zig compiles its own runtime library, which the host does not use, for a platform. */
  const WITHOUT_RUNTIME = ["-s", "-nostdlib", "-lc"];

  /** Compiles the host for a platform. */
  async function compile(name: string, ...flags: readonly string[]): Promise<string> {
    const [target = ""] = PLATFORMS[name] ?? [];
    const host = join(folder, `host-${name}`);
    const command = ["zig", "cc", "-target", target, "-O2", source, "-o", host];
    const all = [...command, ...installed(name).cflags, ...flags, ...WITHOUT_RUNTIME];
    await succeed(all, { env: zig.env ?? {} });
    return host;
  }

  async function works(host: readonly string[]): Promise<void> {
    const output = await succeed([...host, "progress", '{"n":2}'], { env: WITH_FAKE });
    assertStringIncludes(output, 'result: {"n":2');
  }

  for (const [name, runs] of Object.entries(RUNS)) {
    const purpose = typeof runs === "string" ? `is linked (not run: ${runs})` : "works";
    // By default, Zig links musl statically, and compiles it for a minute.
    const dynamic = name.endsWith("-musl") ? ["-dynamic"] : [];

    test(`${purpose} on ${name}, shared and with the archive`, async () => {
      const { libs, staticLibs } = installed(name);
      for (const libraries of [libs, staticLibs]) {
        const host = await compile(name, ...dynamic, ...libraries);
        if (typeof runs !== "string") await works([...runs, host]);
      }
    });
  }

  const lackOfQemu = hasQemu ? undefined : "there is no qemu-aarch64";
  const long = SOAK > 0 ? undefined : 'it takes two minutes: "npm run test:soak"';
  for (const runner of [[], ["qemu-aarch64"]]) {
    const name = runner.length === 0 ? "linux-x64-musl" : "linux-arm64-musl";
    unless(lacks ?? lackOfQemu ?? long)(
      `works on ${name}, without any shared library`,
      async () => works([...runner, await compile(name, ...installed(name).staticLibs)]),
    );
  }
});
