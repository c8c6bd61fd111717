import { assertEquals, assertGreater } from "@std/assert";
import { describe, it } from "bun:test";
import {
  exists,
  filesBelow,
  jsonOf,
  specifiersOf,
  textOf,
  withoutComments,
} from "./source_tree.ts";

type Names = Readonly<Record<string, string>>;

const deno = jsonOf("deno.json");
const npm = jsonOf("package.json");
const { paths } = jsonOf("tsconfig.json")["compilerOptions"] as {
  readonly paths: Readonly<Record<string, readonly string[]>>;
};
const denoExports = deno["exports"] as Names;
const npmExports = npm["exports"] as Readonly<Record<string, Names>>;
const imports = deno["imports"] as Names;

describe("deno.json and package.json", () => {
  for (const field of ["name", "version", "license"]) {
    it(`agree on the ${field}`, () => {
      assertEquals(typeof npm[field], "string");
      assertEquals(deno[field], npm[field]);
    });
  }

  it("agree with the command on the version", () => {
    assertEquals(textOf("src/cli/terminal.ts").includes(`VERSION = "${npm["version"]}"`), true);
  });

  it("export the same entry points, in the same order", () => {
    // The other packages of plue import the shared chunks of the same version.
    const internal = "./internal/*";
    assertEquals(Object.keys(npmExports), [...Object.keys(denoExports), internal]);
  });

  for (const [entry, source] of Object.entries(denoExports)) {
    it(`export "${entry}" of one source from one file of the package, under one name`, () => {
      const bundled = `./dist/${entry === "." ? "mod" : entry.slice(2)}`;
      assertEquals(npmExports[entry], { types: `${bundled}.d.ts`, default: `${bundled}.js` });
      assertEquals(exists(source), true);
      assertEquals(imports[entry.replace(/^\./, String(npm["name"]))], source);
    });
  }

  it("pin every dependency of development", () => {
    const loose = filesBelow(".", (path) => /(^|\/)package\.json$/.test(path))
      .flatMap((file) => Object.entries(jsonOf(file)["devDependencies"] as Names ?? {}))
      // A second version of a package is installed under another name.
      .filter(([, version]) => !/^(npm:[\w@/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version));
    assertEquals(loose, []);
  });
});

describe("the packages that the adapters name", () => {
  const declared = Object.keys(npm["peerDependencies"] as Names);
  const named = new Set(
    filesBelow("src/adapters", (path) => path.endsWith(".ts"))
      .flatMap((file) => specifiersOf(textOf(file)))
      .filter((specifier) => !/^(\.|node:)/.test(specifier))
      .map((specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier),
  );
  // Imported through a variable, so that the types do not depend on the package.
  if (textOf("src/adapters/native/guest_runtimes.ts").includes('const module = "koffi"')) {
    named.add("koffi");
  }
  // The program passes these packages in. The adapters declare the functions that they use.
  if (textOf("src/adapters/postgres/mod.ts").includes("of the package `pg`")) named.add("pg");
  if (textOf("src/adapters/redis/mod.ts").includes("of the package `redis`")) named.add("redis");

  it("are optional peers, apart from TypeBox, which is in the bundle", () => {
    assertEquals([...named].filter((name) => !declared.includes(name)), ["typebox"]);
    assertEquals(declared.filter((name) => !named.has(name)), []);
    assertEquals(npm["dependencies"], undefined);
    const optional = npm["peerDependenciesMeta"] as Readonly<Record<string, unknown>>;
    assertEquals(Object.keys(optional), declared);
  });
});

describe("tsconfig.json", () => {
  it("resolves what deno.json resolves, except what Bun has itself", () => {
    const wanted = Object.entries(imports).filter(([name]) => name !== "bun:test")
      // The path has no extension, so that TypeScript finds the types and Bun the code.
      .map(([name, path]): [string, readonly string[]] => [name, [path.replace(/\.js$/, "")]]);
    assertEquals(Object.entries(paths), wanted);
  });
});

describe("the lock files", () => {
  it("do not name a registry", () => {
    const files = filesBelow(".", (path) => path.endsWith("package-lock.json"));
    assertGreater(files.length, 10);
    assertEquals(files.filter((file) => textOf(file).includes('"resolved"')), []);
  });
});

describe("an entry of the package", () => {
  // The modules of other folders may export everything: nothing outside of the package sees them.
  for (const file of new Set<string>(Object.values(denoExports))) {
    it(`writes every name out in ${file}`, () => {
      assertEquals(withoutComments(textOf(file)).match(/export \*/g), null);
    });
  }
});
