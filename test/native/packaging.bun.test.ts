// libplue as others get it: built, and installed for pkg-config and CMake.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { maybe } from "../support/skip.ts";
import {
  buildPrograms,
  hasProgram,
  LONG_LIMIT_MS,
  make,
  PROGRAMS,
  ROOT,
  run,
  said,
} from "./support.ts";

const SOURCE = join(ROOT, "ffi", "examples", "host.c");
const missing = buildPrograms();

const folder = mkdtempSync(join(tmpdir(), "plue-packaging-"));
const [first, second, staged] = ["first", "second", "staged"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
const FAKE_SIDECAR = { PLUE_SIDECAR: join(PROGRAMS, "fake_sidecar") };

beforeAll(() => {
  if (missing !== undefined) return;
  make("-s", "install", `PREFIX=${first}`);
  make("-s", "install", `PREFIX=${second}`);
  make("-s", "install", "PREFIX=/opt/plue", `DESTDIR=${staged}`);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program that must end well, and gives what it printed. */
async function succeed(
  command: readonly string[],
  env: { readonly [name: string]: string } = {},
): Promise<string> {
  const outcome = await run(command, { env, limitMs: LONG_LIMIT_MS });
  assertEquals(outcome.code, 0, `${command.join(" ")}: ${said(outcome)}`);
  return outcome.stdout.trim();
}

/** Runs a line of the README in a shell. */
function shell(line: string, prefix: string): Promise<string> {
  return succeed(["sh", "-ec", line], {
    PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig"),
  });
}

const withCompiler = maybe(missing === undefined, missing ?? "");
const withPkgConfig = maybe(
  missing === undefined && hasProgram("pkg-config"),
  missing ?? "there is no pkg-config",
);
const withCmake = maybe(
  missing === undefined && hasProgram("cmake"),
  missing ?? "there is no cmake",
);

describe("make", () => {
  withCompiler("compiles the examples, like everything that tests build, without a warning", () => {
    make("-s", "-j2", "examples");
  });
});

describe("npm run build:native", () => {
  const clone = join(folder, "clone");
  withCompiler("builds the library in a fresh clone, and says what the sidecar needs", async () => {
    const isSource = (path: string): boolean =>
      !path.includes("node_modules") && path !== join(ROOT, "ffi", "build") &&
      // Links to the runtimes of this tree, which the script would change.
      path !== join(ROOT, "scripts", "runtimes", "bin");
    for (const name of ["ffi", "scripts"]) {
      cpSync(join(ROOT, name), join(clone, name), {
        recursive: true,
        filter: isSource,
      });
    }
    const script = join(clone, "scripts", "build_native.mjs");
    const outcome = await run(["node", script], { limitMs: LONG_LIMIT_MS });
    assertEquals(outcome.code, 0, said(outcome));
    assertStringIncludes(outcome.stdout, "Built ffi/build/libplue");
    assertEquals(existsSync(join(clone, "ffi", "build", "libplue.a")), true);
    assertMatch(
      outcome.stderr,
      /^Did not build the sidecar: it needs .+; run "node scripts\/setup/,
    );

    const asked = await run(["node", script, "--sidecar"]);
    assertEquals(asked.code, 1, said(asked));
    assertMatch(asked.stderr, /^Cannot build the sidecar: it needs /);
  });

  const lack = missing ?? ["npm", "bun"].find((name) => !hasProgram(name));
  maybe(lack === undefined, lack ?? "")(
    "is followed in ffi/README.md by commands that run a host with the sidecar",
    async () => {
      const readme = readFileSync(join(ROOT, "ffi", "README.md"), "utf8");
      const [, block = ""] = /```sh\n(npm run build:native [^]*?)```/.exec(readme) ?? [];
      for (const name of ["node_modules", "src", "mod.ts", "package.json", "examples"]) {
        symlinkSync(join(ROOT, name), join(clone, name));
      }
      const output = await succeed(["sh", "-ec", `cd '${clone}'\n${block}`]);
      assertStringIncludes(output, 'result: {"message":"hello"}');
    },
  );
});

describe("make install", () => {
  withPkgConfig("installs what can be moved as a whole", async () => {
    const old = join(folder, "old");
    const moved = join(folder, "moved");
    make("-s", "install", `PREFIX=${old}`);
    renameSync(old, moved);
    for (const prefix of [first, second, moved]) {
      assertEquals(resolve(await shell("pkg-config --variable=prefix plue", prefix)), prefix);
      assertEquals(existsSync(join(prefix, "lib", "libplue.a")), true);
    }
  });

  withCompiler("puts DESTDIR before where it writes, and not into what it writes", () => {
    const library = join(staged, "opt", "plue", "lib");
    const text = readFileSync(join(library, "pkgconfig", "plue.pc"), "utf8");
    assertEquals(text.includes(staged), false);
    assertEquals(existsSync(join(library, "libplue.a")), true);
    const include = join(staged, "opt", "plue", "include");
    assertEquals(existsSync(join(include, "plue.h")), true);
    // Not in the folder of plue.h, because the name is too common.
    assertEquals(existsSync(join(include, "CPlue", "module.modulemap")), true);
  });

  maybe(missing === undefined && hasProgram("clang"), missing ?? "there is no clang")(
    "installs a module map by which Swift and Objective-C import the library",
    async () => {
      const source = join(folder, "import.m");
      writeFileSync(source, `@import CPlue;\nint main(void) { return plue_abi_version() == 0; }\n`);
      const map = join(first, "include", "CPlue", "module.modulemap");
      await succeed([
        "clang",
        ...["-fmodules", `-fmodules-cache-path=${join(folder, "modules")}`],
        ...[`-fmodule-map-file=${map}`, `-I${join(first, "include")}`, "-fsyntax-only", source],
      ]);
    },
  );

  withPkgConfig("installs into the folders that it is told, and uninstalls from them", async () => {
    const prefix = join(folder, "third");
    const variables = [
      `PREFIX=${prefix}`,
      `LIBDIR=${prefix}/lib/x86_64-linux-gnu`,
      `INCLUDEDIR=${folder}/headers`,
      `LIBEXECDIR=${prefix}/libexec/plue`,
    ];
    make("-s", "install", ...variables);
    const path = join(prefix, "lib", "x86_64-linux-gnu", "pkgconfig");
    const flags = await succeed(
      ["pkg-config", "--cflags", "--libs", "plue"],
      {
        PKG_CONFIG_PATH: path,
      },
    );
    const [include = "", library = ""] = flags.split(" ");
    assertEquals(existsSync(join(include.slice(2), "plue.h")), true, flags);
    assertEquals(existsSync(join(library.slice(2), "libplue.a")), true, flags);

    make("-s", "uninstall", ...variables);
    const left = [prefix, join(folder, "headers")]
      .flatMap((name) => readdirSync(name, { recursive: true, withFileTypes: true }))
      .filter((entry) => !entry.isDirectory());
    assertEquals(left, []);
  });
});

describe("a host of another project", () => {
  withPkgConfig("links by pkg-config, and starts wherever libplue is installed", async () => {
    const host = join(folder, "host_shared");
    const rpath = "-Wl,-rpath,$(pkg-config --variable=libdir plue)";
    await shell(
      `cc ${SOURCE} -o ${host} $(pkg-config --cflags --libs plue) ${rpath}`,
      second,
    );
    await succeed([host, "echo"], FAKE_SIDECAR);
  });

  withPkgConfig("links the archive by pkg-config, and then needs no library", async () => {
    const host = join(folder, "host_static");
    const archive = "$(pkg-config --variable=libdir plue)/libplue.a -pthread -ldl";
    await shell(
      `cc ${SOURCE} -o ${host} $(pkg-config --cflags plue) ${archive}`,
      second,
    );
    await succeed([host, "echo"], FAKE_SIDECAR);
  });

  withPkgConfig(
    "finds the sidecar of the same prefix, linked either way, and when that is moved as a whole",
    async () => {
      const prefix = join(folder, "with_sidecar");
      make("-s", "install", `PREFIX=${prefix}`);
      cpSync(FAKE_SIDECAR.PLUE_SIDECAR, join(prefix, "libexec", "plue-sidecar"));
      const archive = `${prefix}/lib/libplue.a -pthread -ldl`;
      const shared = `-L${prefix}/lib -lplue -Wl,-rpath,${prefix}/lib`;
      for (const libraries of [archive, shared]) {
        const host = join(folder, "host_with_sidecar");
        await shell(
          `cc ${SOURCE} -o ${host} -I${prefix}/include ${libraries}`,
          prefix,
        );
        await succeed([host, "echo"]);
      }

      const moved = join(folder, "moved_with_sidecar");
      renameSync(prefix, moved);
      const host = join(folder, "host_with_sidecar");
      await succeed([host, "echo"], { LD_LIBRARY_PATH: join(moved, "lib") });
    },
  );

  withCmake("is refused another minor version by CMake", async () => {
    for (
      const [version, isFound] of [
        ["0.1", true],
        ["0.1.0", true],
        ["0.2", false],
        ["0.0.9", false],
        ["1", false],
      ]
    ) {
      const project = join(folder, `version-${version}`);
      mkdirSync(project);
      writeFileSync(
        join(project, "CMakeLists.txt"),
        `cmake_minimum_required(VERSION 3.16)
project(host C)
find_package(plue ${version} QUIET)
message(STATUS "found: ${"${plue_FOUND}"}")
`,
      );
      const prefix = `-DCMAKE_PREFIX_PATH=${second}`;
      const output = await succeed(["cmake", "-S", project, "-B", join(project, "b"), prefix]);
      assertStringIncludes(output, `found: ${isFound ? 1 : 0}`);
    }
  });

  withCmake("links by CMake, shared and statically", async () => {
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(
      join(project, "CMakeLists.txt"),
      `cmake_minimum_required(VERSION 3.16)
project(host C)
find_package(plue 0.1 REQUIRED)
add_executable(host_shared ${SOURCE})
target_link_libraries(host_shared plue::plue)
add_executable(host_static ${SOURCE})
target_link_libraries(host_static plue::plue_static)
`,
    );
    const build = join(project, "build");
    await succeed([
      "cmake",
      "-S",
      project,
      "-B",
      build,
      `-DCMAKE_PREFIX_PATH=${second}`,
    ]);
    await succeed(["cmake", "--build", build]);
    await succeed([join(build, "host_shared"), "echo"], FAKE_SIDECAR);
    await succeed([join(build, "host_static"), "echo"], FAKE_SIDECAR);
  });
});
