// libplue for its users: built, installed for pkg-config and CMake, and linked by the hosts of
// ffi/README.md.

import { beforeAll, describe, it } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import * as fs from "node:fs";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { findZig } from "../../scripts/setup.mjs";
import * as native from "./support.ts";
import { lackOf, outputOf, ROOT, succeed, unless } from "./support.ts";

const SOURCE = join(ROOT, "ffi", "examples", "host.c");
const readme = fs.readFileSync(join(ROOT, "ffi", "README.md"), "utf8");
const missing = native.buildPrograms();

const folder = native.temporaryFolder("packaging");
const inFolder = (name: string): string => join(folder, name);
const [first, second, staged] = [inFolder("first"), inFolder("second"), inFolder("staged")];
/** An installation with a sidecar that has been moved. */
const moved = inFolder("moved");

function install(...variables: readonly string[]): void {
  native.make("-s", "install", ...variables);
}

beforeAll(() => {
  if (missing !== undefined) return;
  install(`PREFIX=${first}`);
  install(`PREFIX=${second}`);
  install("PREFIX=/opt/plue", `DESTDIR=${staged}`);
});

/** Runs a line of the README in a shell. */
function withPrefix(prefix: string, line: string): Promise<string> {
  return native.shell(line, { env: { PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig") } });
}

const withCompiler = unless(missing);
const withPkgConfig = unless(lackOf("pkg-config"));
const withCmake = unless(lackOf("cmake"));

describe("npm run build:native", () => {
  const clone = inFolder("clone");
  withCompiler("builds the library in a new clone, and names the sidecar's needs", async () => {
    const isSource = (path: string): boolean =>
      !path.includes("node_modules") && path !== join(ROOT, "ffi", "build") &&
      // Links to the runtimes of this tree, which the script would change.
      path !== join(ROOT, "scripts", "runtimes", "bin");
    for (const name of ["ffi", "scripts"]) {
      fs.cpSync(join(ROOT, name), join(clone, name), { recursive: true, filter: isSource });
    }
    const script = join(clone, "scripts", "build_native.mjs");
    const env = { CFLAGS: "-O0" };
    const outcome = await native.run(["node", script], { limitMs: native.LONG_LIMIT_MS, env });
    assertEquals(outcome.code, 0, outputOf(outcome));
    assertStringIncludes(outcome.stdout, "Built ffi/build/libplue");
    assertEquals(existsSync(join(clone, "ffi", "build", "libplue.a")), true);
    assertMatch(
      outcome.stderr,
      /^Did not build the sidecar: it needs .+; run "node scripts\/setup/,
    );

    const located = await native.run(["node", script, "--sidecar"]);
    assertEquals(located.code, 1, outputOf(located));
    assertMatch(located.stderr, /^Cannot build the sidecar: it needs /);
  });

  unless(lackOf("npm", "bun"))(
    "is followed in ffi/README.md by commands that run a host with the sidecar, without a warning",
    async () => {
      const [, block = ""] = /```sh\n(npm run build:native [^]*?)```/.exec(readme) ?? [];
      for (const name of ["node_modules", "src", "mod.ts", "package.json", "examples"]) {
        fs.symlinkSync(join(ROOT, name), join(clone, name));
      }
      const env = { CFLAGS: "-O0", WERROR: "-Werror" };
      const output = await native.shell(block, { cwd: clone, env });
      assertStringIncludes(output, 'result: {"message":"hello"}');
    },
  );
});

describe("make install", () => {
  withCompiler("prepends DESTDIR to the paths of files, but not to paths in the files", () => {
    const library = join(staged, "opt", "plue", "lib");
    const text = fs.readFileSync(join(library, "pkgconfig", "plue.pc"), "utf8");
    assertEquals(text.includes(staged), false);
    assertEquals(existsSync(join(library, "libplue.a")), true);
    const include = join(staged, "opt", "plue", "include");
    assertEquals(existsSync(join(include, "plue.h")), true);
    // The module map is not in the folder of plue.h, because its name is too common.
    assertEquals(existsSync(join(include, "CPlue", "module.modulemap")), true);
  });

  unless(lackOf("clang"))(
    "installs a module map by which Swift and Objective-C import the library",
    async () => {
      const source = inFolder("import.m");
      const code = "@import CPlue;\nint main(void) { return plue_abi_version() == 0; }\n";
      fs.writeFileSync(source, code);
      const include = join(first, "include");
      await succeed([
        "clang",
        ...["-fmodules", `-fmodules-cache-path=${inFolder("modules")}`, "-fsyntax-only"],
        `-fmodule-map-file=${join(include, "CPlue", "module.modulemap")}`,
        ...[`-I${include}`, source],
      ]);
    },
  );

  withPkgConfig("installs into the given folders, and uninstalls from them", async () => {
    const prefix = inFolder("third");
    const headers = inFolder("headers");
    const library = join(prefix, "lib", "x86_64-linux-gnu");
    const folders = [`LIBDIR=${library}`, `INCLUDEDIR=${headers}`];
    const variables = [`PREFIX=${prefix}`, ...folders, `LIBEXECDIR=${prefix}/libexec/plue`];
    install(...variables);
    const env = { PKG_CONFIG_PATH: join(library, "pkgconfig") };
    const flags = await succeed(["pkg-config", "--cflags", "--libs", "plue"], { env });
    const [include = "", libraries = ""] = flags.trim().split(" ");
    assertEquals(existsSync(join(include.slice(2), "plue.h")), true, flags);
    assertEquals(existsSync(join(libraries.slice(2), "libplue.a")), true, flags);

    native.make("-s", "uninstall", ...variables);
    const left = [prefix, headers]
      .flatMap((name) => fs.readdirSync(name, { recursive: true, withFileTypes: true }))
      .filter((entry) => !entry.isDirectory());
    assertEquals(left, []);
  });
});

describe("a host of another project", () => {
  const rpath = "-Wl,-rpath,$(pkg-config --variable=libdir plue)";
  const ways = {
    "links by pkg-config, and starts wherever libplue is installed":
      `$(pkg-config --cflags --libs plue) ${rpath}`,
    "links the archive by pkg-config, and then needs no library":
      "$(pkg-config --cflags plue) $(pkg-config --variable=libdir plue)/libplue.a -pthread -ldl",
  };
  for (const [does, flags] of Object.entries(ways)) {
    withPkgConfig(does, async () => {
      const host = inFolder("host");
      await withPrefix(second, `cc ${SOURCE} -o ${host} ${flags}`);
      await succeed([host, "echo"], { env: native.WITH_FAKE });
    });
  }

  withPkgConfig(
    "finds the sidecar of its prefix, linked either way, even if moved",
    async () => {
      const prefix = inFolder("with_sidecar");
      install(`PREFIX=${prefix}`);
      fs.cpSync(native.WITH_FAKE.PLUE_SIDECAR, join(prefix, "libexec", "plue-sidecar"));
      const host = inFolder("host_with_sidecar");
      const archive = `${prefix}/lib/libplue.a -pthread -ldl`;
      const shared = `-L${prefix}/lib -lplue -Wl,-rpath,${prefix}/lib`;
      for (const libraries of [archive, shared]) {
        await native.shell(`cc ${SOURCE} -o ${host} -I${prefix}/include ${libraries}`);
        await succeed([host, "echo"]);
      }

      fs.renameSync(prefix, moved);
      await succeed([host, "echo"], { env: { LD_LIBRARY_PATH: join(moved, "lib") } });
      for (const path of [first, second, moved]) {
        const printed = await withPrefix(path, "pkg-config --variable=prefix plue");
        assertEquals(resolve(printed.trim()), path);
        assertEquals(existsSync(join(path, "lib", "libplue.a")), true);
      }
    },
  );

  /** Configures a project of CMake, in a folder of its own. */
  async function configure(name: string, lines: string): Promise<string> {
    const project = inFolder(name);
    fs.mkdirSync(project);
    const head = "cmake_minimum_required(VERSION 3.16)\nproject(host C)\n";
    fs.writeFileSync(join(project, "CMakeLists.txt"), head + lines);
    const folders = ["-S", project, "-B", join(project, "build")];
    return await succeed(["cmake", ...folders, `-DCMAKE_PREFIX_PATH=${second}`]);
  }

  withCmake("cannot use another minor version through CMake", async () => {
    const output = await configure(
      "versions",
      `foreach(version 0.1 0.1.0 0.2 0.0.9 1)
  unset(plue_DIR CACHE)
  find_package(plue \${version} QUIET)
  message(STATUS "\${version}: \${plue_FOUND}")
endforeach()
`,
    );
    const found = [...output.matchAll(/^-- ([\d.]+: [01])$/gm)].map(([, line]) => line);
    assertEquals(found, ["0.1: 1", "0.1.0: 1", "0.2: 0", "0.0.9: 0", "1: 0"]);
  });

  withCmake("links by CMake, shared and statically", async () => {
    await configure(
      "project",
      `find_package(plue 0.1 REQUIRED)
add_executable(host_shared ${SOURCE})
target_link_libraries(host_shared plue::plue)
add_executable(host_static ${SOURCE})
target_link_libraries(host_static plue::plue_static)
`,
    );
    const build = join(inFolder("project"), "build");
    await succeed(["cmake", "--build", build]);
    for (const host of ["host_shared", "host_static"]) {
      await succeed([join(build, host), "echo"], { env: native.WITH_FAKE });
    }
  });
});

/** Runs lines of the README in a copy of the examples, with the installed libplue. */
function inExamples(name: string, lines: string, more = {}): Promise<native.Outcome> {
  const cwd = inFolder(name);
  fs.cpSync(join(ROOT, "ffi", "examples"), cwd, { recursive: true });
  const installed = { PREFIX: second, PKG_CONFIG_PATH: join(second, "lib", "pkgconfig") };
  const env = { ...installed, ...native.WITH_FAKE, ...more };
  return native.run(["sh", "-ec", lines], { cwd, limitMs: native.LONG_LIMIT_MS, env });
}

/** The table in ffi/README.md: a language, its example, and the build command. */
const ROW = /^\| ([^|]+?) +\| \[`(examples\/[^`]+)`\][^|]*\| `([^`]+)` +\|$/gm;
const hosts = [...readme.matchAll(ROW)]
  .map(([, language = "", file = "", command = ""]) => ({ language, file, command }));

describe("ffi/README.md", () => {
  it("has a host in each language without a binding", () => {
    const languages = hosts.map(({ language }) => language);
    assertEquals(languages, ["C", "Zig 0.16", "Swift"]);
    assertEquals(hosts.filter(({ file }) => !existsSync(join(ROOT, "ffi", file))), []);
  });
});

describe("the section about valgrind and sanitizers in ffi/README.md", () => {
  const [, block = ""] = /^## Valgrind and sanitizers\n[^]*?```sh\n([^]*?)```/m.exec(readme) ?? [];
  const [withValgrind = "", withSanitizer = ""] = block.split("\n");
  const build = hosts.find(({ language }) => language === "C")?.command ?? "";
  const cases = [
    { tool: "valgrind", lack: lackOf("valgrind"), lines: [build, withValgrind] },
    {
      tool: "-fsanitize=thread",
      lack: native.lackOfSanitizer("thread"),
      lines: [withSanitizer, "./host echo '{}'"],
    },
  ];
  for (const { tool, lack, lines } of cases) {
    unless(lack)(`has a command for ${tool} that works`, async () => {
      const outcome = await inExamples(`under ${tool}`, lines.join("\n"));
      assertEquals([outcome.code, outcome.stderr], [0, ""], outputOf(outcome));
      assertStringIncludes(outcome.stdout, "result: {}", outputOf(outcome));
    });
  }
});

const foundZig = missing === undefined ? await findZig() : {};

describe("the example host", () => {
  for (const { language, command } of hosts) {
    const [program = ""] = command.split(" ");
    const isZig = program === "zig";
    const lack = isZig ? missing ?? foundZig.missing : lackOf(program);

    unless(lack)(`in ${language} is built and works`, async () => {
      const runLine = (line: string): Promise<native.Outcome> =>
        inExamples(language, line, isZig ? foundZig.env : {});
      const built = await runLine(command);
      assertEquals([built.code, built.stderr], [0, ""], outputOf(built));

      const good = await runLine(`./host progress '{"n":2}'`);
      assertEquals(good.code, 0, outputOf(good));
      assertMatch(good.stdout, /result: \{"n":2/, outputOf(good));
      assertStringIncludes(good.stdout, "echo", outputOf(good));
      const events = `${good.stdout}${good.stderr}`.match(/"i":[01]/g);
      assertEquals(events?.length, 2, outputOf(good));

      const bad = await runLine("./host nope");
      assertEquals(bad.code, 1, outputOf(bad));
      assertMatch(bad.stdout, /failure: .*There is no tool nope/, outputOf(bad));
    });
  }
});
