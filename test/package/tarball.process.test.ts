import { assertEquals, assertGreater, assertMatch } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { publint } from "publint";
import { maybe } from "../support/skip.ts";
import { canRun, ROOT, run } from "./run.ts";

const manifest = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
) as {
  readonly name: string;
  readonly bin: { readonly plue: string };
  readonly exports: Readonly<Record<string, unknown>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const SPECIFIERS = Object.keys(manifest.exports).map((entry) => entry.replace(".", manifest.name));

const hasNpm = canRun("npm") && canRun("node") &&
  existsSync(join(ROOT, "node_modules/typescript/bin/tsc"));

const packed = mkdtempSync(join(tmpdir(), "plue-package-"));
const staged = join(packed, "tools");
const app = join(packed, "app");

/** Prints what every entry point exports, by name, as JSON. */
const PRINT_NAMES = `
  const names = {};
  for (const specifier of ${JSON.stringify(SPECIFIERS)}) {
    names[specifier] = Object.keys(await import(specifier)).sort();
  }
  console.log(JSON.stringify(names));
`;

/** Runs the code of the README, and says on which version of a runtime. */
const RUN_README = `
  for (const code of README) await import("./" + code);
  const { node, bun, deno } = process.versions;
  console.log(deno ?? bun ?? node, "ran " + README.length);
`;

const TYPES = `
  import { defineTool, type InferParams, type Tool } from "${manifest.name}";
  import Type from "typebox";
  ${SPECIFIERS.map((specifier, at) => `import * as entry${at} from "${specifier}";`).join("\n")}
  export const entries: readonly object[] = [${SPECIFIERS.map((_, at) => `entry${at}`)}];
  export const tool: Tool = defineTool({ name: "noop", description: "Does nothing." });
  // @ts-expect-error -- a description is not optional
  defineTool({ name: "noop" });
  const text: InferParams<{ readonly type: "string" }> = "inferred without TypeBox";
  // @ts-expect-error -- the schema says string
  const number: InferParams<{ readonly type: "string" }> = 1;
  defineTool({
    name: "greet",
    description: "Greets.",
    parameters: Type.Object({ name: Type.String() }),
    execute: ({ name }) => {
      const known: string = name;
      // @ts-expect-error -- the schema says string
      const wrong: number = name;
      return [known, wrong, text, number];
    },
  });
`;

/** The packages whose types an entry needs. */
const TYPED_PEERS: { readonly [specifier: string]: readonly string[] } = {
  "@plue/tools/ajv": ["ajv"],
  "@plue/tools/hono": ["hono"],
  // The SDK's own types name Node's.
  "@plue/tools/mcp": [
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/server",
    "@types/node",
  ],
  "@plue/tools/nats": ["@nats-io/nats-core", "@types/node"],
};

/** The entries that need the same packages. */
const GROUPS = Map.groupBy(
  SPECIFIERS,
  (specifier) => TYPED_PEERS[specifier]?.join(" ") ?? "",
);

/** Builds, packs, and installs the tarball into an app that links the dependencies. */
function install(): void {
  run("node", [
    "scripts/build_packages.mjs",
    "--out",
    packed,
    "--only",
    "tools",
  ], ROOT);
  unpack(app, [...Object.keys(manifest.peerDependencies), "typebox"]);
  writeFileSync(join(app, "names.mjs"), PRINT_NAMES);
  const readme = readFileSync(
    join(app, "node_modules", manifest.name, "README.md"),
    "utf8",
  );
  const typescript = new Bun.Transpiler({ loader: "ts" });
  const codes = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(
    ([, code = ""], at) => {
      // Node 20 and 22 run no TypeScript.
      writeFileSync(
        join(app, `readme${at}.mjs`),
        typescript.transformSync(code),
      );
      return `readme${at}.mjs`;
    },
  );
  writeFileSync(
    join(app, "readme.mjs"),
    `const README = ${JSON.stringify(codes)};${RUN_README}`,
  );
  writeFileSync(join(app, "types.ts"), TYPES);
}

/** Creates an app with the package and links to other packages. */
function unpack(folder: string, packages: readonly string[]): void {
  const tarball = readdirSync(packed).find((name) => name.endsWith(".tgz")) ??
    "";
  const home = join(folder, "node_modules", manifest.name);
  mkdirSync(home, { recursive: true });
  run("tar", [
    "-xzf",
    join(packed, tarball),
    "-C",
    home,
    "--strip-components=1",
  ], packed);
  for (const name of packages) {
    const place = join(folder, "node_modules", name);
    // A scoped name is a folder in a folder.
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), place);
  }
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({
      type: "module",
      private: true,
      scripts: { test: "node readme.mjs" },
    }),
  );
}

const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

/** Returns what a TypeScript compiler finds wrong in a file. */
function typeCheck(tsc: string, folder: string, options: readonly string[], file: string): string {
  const args = [tsc, "--noEmit", "--strict", ...options, file];
  const { status, stdout, stderr } = spawnSync("node", args, { cwd: folder, encoding: "utf8" });
  return stdout + stderr + (status === 0 ? "" : `It ended with ${status}`);
}

describe("the npm package", () => {
  const test = maybe(
    hasNpm,
    "npm, Node and the packages of package-lock.json are not all here",
  );

  beforeAll(() => {
    if (hasNpm) install();
  });
  afterAll(() => rmSync(packed, { recursive: true, force: true }));

  const runtimes: readonly (readonly [string, string, readonly string[]])[] = [
    ["Node 24", "node", []],
    ["Bun", "bun", []],
    ["Deno", "deno", ["run", "--allow-all", "--node-modules-dir=manual"]],
  ];
  for (const [name, command, args] of runtimes) {
    const onRuntime = maybe(hasNpm && canRun(command), `${name} is not here`);

    onRuntime(`exports on ${name} what the sources export`, async () => {
      const names = JSON.parse(
        run(command, [...args, "names.mjs"], app),
      ) as Record<
        string,
        unknown
      >;
      assertEquals(Object.keys(names), SPECIFIERS);
      for (const specifier of SPECIFIERS) {
        const source = await import(specifier) as object;
        assertGreater(Object.keys(source).length, 0);
        assertEquals(names[specifier], Object.keys(source).sort());
      }
    });
  }

  // The version, and how the code of the README is started with it.
  const nodes = (["node20", "node22"] as const).map((name) =>
    join(import.meta.dirname, "node_modules", name, "bin/node")
  );
  const hosts: readonly (readonly [string, string, string])[] = [
    ["20.19.", nodes[0] ?? "", "Node 20.19"],
    ["22.", nodes[1] ?? "", "Node 22"],
    ["24.", Bun.which("node") ?? "", "Node 24"],
  ];
  for (const [version, node, name] of hosts) {
    maybe(hasNpm && existsSync(node), `${name} is not here`)(
      `runs the code of the README on ${name}, by npm test`,
      () => {
        chmodSync(node, 0o755);
        const env = {
          ...process.env,
          PATH: `${dirname(node)}:${process.env["PATH"]}`,
        };
        const printed = run("npm", ["test", "--silent"], app, env).trim();
        assertMatch(
          printed,
          new RegExp(`^${version.replaceAll(".", "\\.")}[\\d.]* ran [3-9]$`),
        );
      },
    );
  }
  for (const [name, command, args] of runtimes.slice(1)) {
    maybe(hasNpm && canRun(command), `${name} is not here`)(
      `runs the code of the README on ${name}`,
      () =>
        assertMatch(
          run(command, [...args, "readme.mjs"], app),
          / ran [3-9]\n$/,
        ),
    );
  }

  for (
    const [name, command, args] of [...runtimes, [
      "Node 20.19",
      join(import.meta.dirname, "node_modules/node20/bin/node"),
      [],
    ]] as const
  ) {
    maybe(hasNpm && command !== "" && canRun(command), `${name} is not here`)(
      `has the command plue on ${name}, without any other package`,
      () => {
        const alone = join(packed, `alone-${name.replaceAll(" ", "-")}`);
        const home = join(alone, "node_modules", manifest.name);
        mkdirSync(home, { recursive: true });
        cpSync(join(app, "node_modules", manifest.name), home, {
          recursive: true,
        });
        const tool = '{ name: "ping", description: "Answers.", execute: () => "pong" }';
        writeFileSync(join(alone, "tools.mjs"), `export const tool = ${tool};`);
        const words = [
          ...args,
          join(home, manifest.bin.plue),
          "call",
          "-f",
          "tools.mjs",
          "ping",
        ];
        assertEquals(run(command, words, alone), "pong\n");
      },
    );
  }

  for (const resolution of ["nodenext", "bundler"]) {
    test(`has types that TypeScript finds with moduleResolution "${resolution}"`, () => {
      const module = resolution === "bundler" ? "preserve" : "nodenext";
      const options = ["--exactOptionalPropertyTypes", "--skipLibCheck", "--target", "es2023"];
      options.push("--lib", "esnext,dom", "--types", "", "--module", module);
      options.push("--moduleResolution", resolution);
      assertEquals(typeCheck(TSC, app, options, "types.ts"), "");
    });
  }

  for (const [at, [peers, specifiers]] of [...GROUPS].entries()) {
    test(`has types that are right in themselves, with ${peers || "no peer"}`, () => {
      const folder = join(packed, `typed-${at}`);
      unpack(folder, peers.split(" ").filter((peer) => peer !== ""));
      const lines = specifiers.map((specifier, at) =>
        `export * as entry${at} from "${specifier}";`
      );
      writeFileSync(join(folder, "entries.ts"), lines.join("\n"));
      const types = peers.includes("@types/node") ? "node" : "";
      const options = ["--target", "es2023", "--module", "nodenext", "--types", types];
      assertEquals(typeCheck(TSC, folder, options, "entries.ts"), "");
    });
  }

  const oldest = join(ROOT, "test/package/node_modules/typescript-5.5/bin/tsc");
  maybe(hasNpm && existsSync(oldest), "TypeScript 5.5 is not here")(
    "has types that the oldest TypeScript takes",
    () => {
      const folder = join(packed, "typed-oldest");
      unpack(folder, ["@types/node"]);
      // Other entries have types of their peers, which want newer versions.
      const specifiers = [
        "",
        "/core",
        "/layers",
        "/formats",
        "/finding",
        "/frameworks",
        "/calls",
      ];
      const lines = specifiers.map((path, at) =>
        `export * as entry${at} from "${manifest.name}${path}";`
      );
      writeFileSync(join(folder, "entries.ts"), lines.join("\n"));
      const options = ["--target", "es2022", "--lib", "esnext,dom", "--types", "node"];
      const printed = typeCheck(oldest, folder, [...options, "--module", "nodenext"], "entries.ts");
      // Other packages may require a newer TypeScript.
      const own = printed.split("\n").filter((line) =>
        line.startsWith("entries.ts") || line.includes("plue/tools/")
      );
      assertEquals(own, []);
    },
  );

  for (const [, node, name] of hosts) {
    maybe(hasNpm && existsSync(node), `${name} is not here`)(
      `is loaded by require on ${name}`,
      () => {
        const script = `console.log(typeof require("${manifest.name}").defineTool)`;
        const args = ["--input-type=commonjs", "--no-warnings", "-e", script];
        assertEquals(run(node, args, app).trim(), "function");
      },
    );
  }

  test("satisfies publint", async () => {
    const { messages } = await publint({
      pkgDir: staged,
      strict: true,
      pack: false,
    });
    assertEquals(messages, []);
  });

  test("contains bundles, guides and examples, and neither sources nor tests", () => {
    const home = join(app, "node_modules", manifest.name);
    const files = readdirSync(home, { recursive: true, encoding: "utf8" });
    assertEquals(
      files.filter((file) => /^(src|mod\.ts)|\.test\.|(^|\/)test\/|node_modules/.test(file)),
      [],
    );
    const wanted = [
      "dist/mod.js",
      "dist/mod.js.map",
      "dist/mod.d.ts",
      "dist/LICENSES.txt",
      "docs/first-tool.md",
      "docs/defining.md",
      "examples/script.ts",
    ];
    assertEquals(wanted.filter((file) => !files.includes(file)), []);
    assertMatch(
      readFileSync(join(home, "dist/LICENSES.txt"), "utf8"),
      /^typebox .*\(MIT\)$/m,
    );
  });

  test("has examples that import the package by its name", () => {
    const examples = join(app, "node_modules", manifest.name, "examples");
    const files = readdirSync(examples, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"));
    assertGreater(files.length, 10);
    const outside = files.filter((file) =>
      new Bun.Transpiler({ loader: "ts" }).scanImports(
        readFileSync(join(examples, file)),
      )
        .some(({ path }) => /^\./.test(path) && !existsSync(join(examples, file, "..", path)))
    );
    assertEquals(outside, []);
  });
});
