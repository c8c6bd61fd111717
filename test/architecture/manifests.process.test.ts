import { assertEquals } from "@std/assert";
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
const tsconfig = jsonOf("tsconfig.json")["compilerOptions"] as Record<
  string,
  unknown
>;
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
    assertEquals(Object.keys(npmExports), Object.keys(denoExports));
  });

  for (const [entry, source] of Object.entries(denoExports)) {
    it(`export "${entry}" from one file of the package`, () => {
      const bundled = `./dist/${entry === "." ? "mod" : entry.slice(2)}`;
      assertEquals(npmExports[entry], { types: `${bundled}.d.ts`, default: `${bundled}.js` });
    });

    it(`name a source that is there for "${entry}"`, () => {
      assertEquals(exists(source), true);
    });

    it(`let the examples import "${entry}" by the package's name`, () => {
      assertEquals(imports[entry.replace(/^\./, String(npm["name"]))], source);
    });
  }

  it("pin every dependency of development", () => {
    const others = [
      "test/oracles",
      "test/edge",
      "test/explorer",
      "scripts/site",
      "bench/peers",
    ]
      .map((folder) => jsonOf(`${folder}/package.json`));
    const loose = [npm, ...others]
      .flatMap((manifest) => Object.entries(manifest["devDependencies"] as Names))
      // A second version of a package is installed under another name.
      .filter(([, version]) => !/^(npm:[\w@/-]+@)?\d+\.\d+\.\d+$/.test(version));
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
  // Imported by a variable, so that the types do not depend on it.
  if (textOf("src/adapters/native/guest_runtimes.ts").includes('const module = "koffi"')) {
    named.add("koffi");
  }

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
    const paths = tsconfig["paths"] as Readonly<
      Record<string, readonly string[]>
    >;
    const wanted = Object.entries(imports).filter(([name]) => name !== "bun:test")
      // Without its extension, so that TypeScript finds the types and Bun the code.
      .map(([name, path]): [string, readonly string[]] => [name, [path.replace(/\.js$/, "")]]);
    assertEquals(Object.entries(paths), wanted);
  });
});

describe("the lock files", () => {
  const folders = [
    "",
    "scripts/runtimes/",
    "bench/peers/",
    "test/oracles/",
    "test/mcp/",
    "test/edge/",
    "test/explorer/",
    "test/native/",
    "test/package/",
    "scripts/site/",
    "scripts/zig/",
  ];
  for (const file of folders.map((folder) => `${folder}package-lock.json`)) {
    it(`name no registry in ${file}`, () => {
      assertEquals(textOf(file).includes('"resolved"'), false);
    });
  }
});

describe("an entry", () => {
  for (const file of Object.values(denoExports)) {
    it(`writes every name out in ${file}`, () => {
      assertEquals(withoutComments(textOf(file)).match(/export \*/g), null);
    });
  }
});
