import { assertEquals, assertThrows } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { findLibplue } from "../../../src/adapters/native/mod.ts";

const app = realpathSync(mkdtempSync(join(tmpdir(), "plue-find-")));
const packages = join(app, "node_modules", "@plue");
const from = pathToFileURL(join(app, "host.mjs"));
const OWN = `${process.platform}-${process.arch}`;

function install(target: string, files: readonly string[] = []): void {
  const folder = join(packages, `native-${target}`);
  mkdirSync(join(folder, "lib"), { recursive: true });
  for (const file of ["package.json", ...files]) writeFileSync(join(folder, file), "{}");
}

describe("findLibplue()", () => {
  beforeAll(() => {
    install(OWN, ["lib/plue-sidecar.js"]);
    install("linux-arm64-musl");
    install("darwin-arm64");
  });
  afterAll(() => rmSync(app, { recursive: true }));

  it("finds the package for this machine, as an import in the app would", () => {
    const { target, library, sidecar } = findLibplue({ from });
    assertEquals(target, OWN);
    const lib = join(packages, `native-${OWN}`, "lib");
    assertEquals(library.startsWith(join(lib, "libplue.")), true);
    assertEquals(sidecar, join(lib, "plue-sidecar.js"));
    assertEquals(findLibplue({ from: join(app, "host.mjs") }).library, library);
  });

  it("finds the package for this machine through @plue/native if the app cannot", () => {
    const lone = join(app, "lone");
    const inner = join(lone, "node_modules", "@plue", "native");
    const target = "linux-arm64";
    const library = join(inner, "node_modules", "@plue", `native-${target}`);
    for (const folder of [join(inner, "include"), library]) mkdirSync(folder, { recursive: true });
    for (const place of [inner, library]) writeFileSync(join(place, "package.json"), "{}");
    writeFileSync(join(inner, "include", "plue.h"), "");
    const found = findLibplue({ from: join(lone, "host.mjs"), target });
    assertEquals(found.archive, join(library, "lib", "libplue.a"));
  });

  it("prints the flags to compile and link, shared and statically", () => {
    const prefix = join(packages, "native-linux-arm64-musl");
    const lib = join(prefix, "lib");
    assertEquals(findLibplue({ from, target: "linux-arm64-musl" }), {
      target: "linux-arm64-musl",
      library: join(lib, "libplue.so.1"),
      archive: join(lib, "libplue.a"),
      sidecar: undefined,
      cflags: [`-I${join(prefix, "include")}`],
      libs: [`-L${lib}`, "-lplue", `-Wl,-rpath,${lib}`],
      staticLibs: [join(lib, "libplue.a"), "-pthread", "-ldl"],
    });
  });

  it("uses the file names of macOS", () => {
    const lib = join(packages, "native-darwin-arm64", "lib");
    const { library, staticLibs } = findLibplue({ from, target: "darwin-arm64" });
    assertEquals(library, join(lib, "libplue.1.dylib"));
    assertEquals(staticLibs, [join(lib, "libplue.a"), "-pthread"]);
  });

  it("suggests the command that installs a missing package", () => {
    assertThrows(
      () => findLibplue({ from, target: "linux-x64-musl" }),
      Error,
      'Cannot find libplue for linux-x64-musl: the package "@plue/native-linux-x64-musl" is not ' +
        'installed; run "npm install @plue/native --os=linux --cpu=x64 --libc=musl" without --omit=optional',
    );
  });
});
