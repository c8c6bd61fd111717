import { assertEquals, assertGreater } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { publint } from "publint";
import { maybe } from "../support/skip.ts";

const ROOT = join(import.meta.dirname, "../..");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  readonly name: string;
  readonly bin: { readonly plue: string };
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const SPECIFIERS = Object.keys(manifest.exports).map((entry) => entry.replace(".", manifest.name));

/** Runs a program; what it prints on its standard output is the answer. */
function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) {
    throw new Error(`Cannot run ${command} ${args.join(" ")}: ${stdout}${stderr}`, {
      cause: error,
    });
  }
  return stdout;
}

function isThere(command: string): boolean {
  try {
    run(command, ["--version"], ROOT);
    return true;
  } catch {
    return false;
  }
}

/** The Node that runs npm is the oldest that plue supports; the one on PATH is the pinned one. */
const npmNode = process.env["npm_node_execpath"];
const hasNpm = isThere("npm") && isThere("node") &&
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

/** Uses the package as its README does: defines a tool, registers it, and runs it. */
const USE = `
  import { defineTool, ToolDispatcher, ToolRegistry } from "${manifest.name}";
  const add = defineTool({
    name: "add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    execute: ({ a, b }) => a + b,
  });
  const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [add] }));
  const right = await dispatcher.dispatch({ name: "add", arguments: '{"a":2,"b":3}' });
  const wrong = await dispatcher.dispatch({ name: "add", arguments: '{"a":2}' });
  console.log(JSON.stringify([right.content, wrong.error.code]));
`;

const TYPES = `
  import { defineTool, type Tool } from "${manifest.name}";
  ${SPECIFIERS.map((specifier, at) => `import * as entry${at} from "${specifier}";`).join("\n")}
  export const entries: readonly object[] = [${SPECIFIERS.map((_, at) => `entry${at}`)}];
  export const tool: Tool = defineTool({ name: "noop", description: "Does nothing." });
  // @ts-expect-error -- a description is not optional
  defineTool({ name: "noop" });
`;

/** The packages whose types an entry needs, besides plue's dependencies. */
const TYPED_PEERS: { readonly [specifier: string]: readonly string[] } = {
  "@plue/tools/ajv": ["ajv"],
  "@plue/tools/explorer": ["hono"],
  "@plue/tools/hono": ["hono"],
  // The SDK's own types name Node's.
  "@plue/tools/mcp": [
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/server",
    "@types/node",
  ],
};

/** The entries that need the same packages. */
const GROUPS = Map.groupBy(SPECIFIERS, (specifier) => TYPED_PEERS[specifier]?.join(" ") ?? "");

/** Builds, packs, and installs the tarball into an app that links the dependencies. */
function install(): void {
  run("node", ["scripts/build_packages.mjs", "--out", packed, "--only", "tools"], ROOT);
  unpack(app, Object.keys(manifest.peerDependencies));
  writeFileSync(join(app, "names.mjs"), PRINT_NAMES);
  writeFileSync(join(app, "use.mjs"), USE);
  writeFileSync(join(app, "types.ts"), TYPES);
}

/** Makes an app with the package and its dependencies, and links these besides. */
function unpack(folder: string, packages: readonly string[]): void {
  const tarball = readdirSync(packed).find((name) => name.endsWith(".tgz")) ?? "";
  const home = join(folder, "node_modules", manifest.name);
  mkdirSync(home, { recursive: true });
  run("tar", ["-xzf", join(packed, tarball), "-C", home, "--strip-components=1"], packed);
  for (const name of [...Object.keys(manifest.dependencies), ...packages]) {
    const place = join(folder, "node_modules", name);
    // A scoped name is a folder in a folder.
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), place);
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module", "private": true }');
}

describe("the npm package", () => {
  const test = maybe(hasNpm, "npm, Node and the packages of package-lock.json are not all here");

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
    const onRuntime = maybe(hasNpm && isThere(command), `${name} is not here`);

    onRuntime(`exports on ${name} what the sources export`, async () => {
      const names = JSON.parse(run(command, [...args, "names.mjs"], app)) as Record<
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

    onRuntime(`defines, registers and runs a tool on ${name}`, () => {
      assertEquals(run(command, [...args, "use.mjs"], app).trim(), '[5,"invalid_arguments"]');
    });
  }

  maybe(hasNpm && npmNode !== undefined, "npm did not start this, so its Node is not known")(
    "defines, registers and runs a tool on the Node that runs npm",
    () => {
      assertEquals(run(npmNode ?? "", ["use.mjs"], app).trim(), '[5,"invalid_arguments"]');
    },
  );

  for (
    const [name, command, args] of [...runtimes, [
      "the Node that runs npm",
      npmNode ?? "",
      [],
    ]] as const
  ) {
    maybe(hasNpm && command !== "" && isThere(command), `${name} is not here`)(
      `has the command plue on ${name}, without any other package`,
      () => {
        const alone = join(packed, `alone-${name.replaceAll(" ", "-")}`);
        const home = join(alone, "node_modules", manifest.name);
        mkdirSync(home, { recursive: true });
        cpSync(join(app, "node_modules", manifest.name), home, { recursive: true });
        const tool = '{ name: "ping", description: "Answers.", execute: () => "pong" }';
        writeFileSync(join(alone, "tools.mjs"), `export const tool = ${tool};`);
        const words = [...args, join(home, manifest.bin.plue), "call", "-f", "tools.mjs", "ping"];
        assertEquals(run(command, words, alone), "pong\n");
      },
    );
  }

  for (const resolution of ["nodenext", "bundler"]) {
    test(`has types that TypeScript finds with moduleResolution "${resolution}"`, () => {
      const module = resolution === "bundler" ? "preserve" : "nodenext";
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      const options = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck"];
      const args = [...options, "--target", "es2023", "--lib", "esnext,dom", "--types", ""];
      assertEquals(
        run("node", [
          tsc,
          ...args,
          "--module",
          module,
          "--moduleResolution",
          resolution,
          "types.ts",
        ], app),
        "",
      );
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
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      const options = ["--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2023"];
      const types = peers.includes("@types/node") ? "node" : "";
      const args = [tsc, ...options, "--module", "nodenext", "--types", types, "entries.ts"];
      assertEquals(run("node", args, folder), "");
    });
  }

  for (const node of [npmNode, "node"]) {
    maybe(hasNpm && node !== undefined, "npm did not start this, so its Node is not known")(
      `is loaded by require on ${node === "node" ? "Node 24" : "the Node that runs npm"}`,
      () => {
        const script = `console.log(typeof require("${manifest.name}").defineTool)`;
        const args = ["--input-type=commonjs", "--no-warnings", "-e", script];
        assertEquals(run(node ?? "", args, app).trim(), "function");
      },
    );
  }

  test("satisfies publint", async () => {
    const { messages } = await publint({ pkgDir: staged, strict: true, pack: false });
    assertEquals(messages, []);
  });

  test("holds sources and builds, and nothing else", () => {
    const home = join(app, "node_modules", manifest.name);
    const files = readdirSync(home, { recursive: true, encoding: "utf8" });
    assertEquals(files.filter((file) => /test|node_modules|\.tsbuildinfo/.test(file)), []);
    assertEquals(files.includes(join("dist", "mod.js")) && files.includes("mod.ts"), true);
  });
});
