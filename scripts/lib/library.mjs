// Bundles the entries of the package for npm: one file per entry, shared chunks, and one `.d.ts` per
// entry. The command `plue` is bundled with them and imports the same chunks, so that each class
// exists once. Packages that are not peers are bundled: TypeBox, and the packages of the command.

import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, sep } from "node:path";
import { rolldown, RolldownMagicString } from "rolldown";
import { parseAst } from "rolldown/parseAst";
import { dts } from "rolldown-plugin-dts";
import { ROOT } from "./paths.mjs";

const readJson = (file) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const peers = Object.keys(readJson("package.json").peerDependencies);

/** The sources of the entries, by the names of their files. */
const ENTRIES = Object.fromEntries(
  Object.entries(readJson("deno.json").exports).map(([entry, source]) => [
    entry === "." ? "mod" : entry.slice(2),
    join(ROOT, source),
  ]),
);

/** The command, which another package has. Its files are in a folder of their own. */
const COMMAND = { "cli/main": join(ROOT, "src/cli/main.ts") };

/** The folders of `src` in the order in which they import each other. */
const FOLDERS = [
  // The core uses only a small part of the next folders.
  "{tool,schema,select,registry}",
  "execute",
  "formats",
  "finding",
  "adapters",
];

function isPeer(id) {
  return peers.some((peer) => id === peer || id.startsWith(`${peer}/`));
}

async function open(input, plugins = []) {
  return await rolldown({
    cwd: ROOT,
    input,
    external: (id) => isPeer(id) || isBuiltin(id) || /^(bun|cloudflare):/.test(id),
    platform: "node",
    transform: { target: "node20.19" },
    // The other form of this package is UMD, in which bundlers cannot follow `require`.
    resolve: { alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" } },
    checks: { bundlerTimings: false },
    plugins,
  });
}

function splitBy(groups) {
  return { groups: groups.map((group, at) => ({ ...group, priority: groups.length - at })) };
}

async function chunksOf(input, groups) {
  const bundle = await open(input);
  const { output } = await bundle.generate({ codeSplitting: splitBy(groups) });
  await bundle.close();
  return output.filter(({ type }) => type === "chunk");
}

async function write(input, options, groups, plugins) {
  const bundle = await open(input, plugins);
  const { output } = await bundle.write({
    chunkFileNames: "chunks/[name].js",
    // Keeps the names of exports between chunks, instead of letters.
    minifyInternalExports: false,
    codeSplitting: splitBy(groups),
    ...options,
  });
  await bundle.close();
  return output.filter(({ type }) => type === "chunk");
}

/** A chunk for the modules of each folder that several entries share. */
function folderChunks(groups, ending = "") {
  return groups.map((folders) => {
    const names = folders.replace(/[{}]/g, "").split(",");
    return {
      name: names.at(-1) + ending,
      test: (id) => names.some((name) => id.startsWith(join(ROOT, "src", name) + sep)),
      minShareCount: 2,
    };
  });
}

/**
 * The chunks of the entries alone. A file costs about a millisecond at import on Node, and without
 * groups there would be a file for each set of entries that share a module. Each chunk contains what
 * its modules import, unless a chunk before it has that.
 */
async function entryChunks() {
  const [main] = await chunksOf(ENTRIES.mod, []);
  const ofMain = new Set(main.moduleIds);
  const groups = [
    { name: "core", test: (id) => id === ENTRIES.core },
    { name: "typebox", test: /node_modules[\\/]typebox[\\/]/ },
    { name: "main", test: (id) => ofMain.has(id), minShareCount: 2 },
    // Few modules of the first folders are not in the chunks above.
    ...folderChunks(["execute", "formats", "finding", "{tool,schema,select,registry,adapters}"]),
  ];
  const chunks = await chunksOf(ENTRIES, groups);
  for (const { name, isEntry, imports } of chunks) {
    const peer = imports.find(isPeer);
    if (peer !== undefined && !isEntry) {
      throw new Error(`Cannot bundle the library: ${name} is shared, and imports "${peer}"`);
    }
  }
  // The shared chunks first, in the order of the groups.
  const places = groups.map(({ name }) => name);
  const placeOf = ({ isEntry, name }) => isEntry ? places.length : places.indexOf(name);
  return chunks.sort((a, b) => placeOf(a) - placeOf(b))
    .map(({ name, isEntry, moduleIds }) => ({ name, isEntry, ids: new Set(moduleIds) }));
}

/**
 * Bundles the library and, in the folder `cli`, the command.
 *
 * @param dir The folder to write to.
 * @returns The modules of the library and of the command.
 */
export async function bundleLibrary(dir) {
  const known = await entryChunks();
  const isOfEntries = (id) => known.some(({ ids }) => ids.has(id));
  const groups = known.map(({ name, isEntry, ids }) => ({
    name,
    test: (id) => ids.has(id),
    // The modules that an entry and the command share are a chunk; the entry has the others.
    minShareCount: isEntry ? 2 : 1,
  }));
  const chunks = await write(
    { ...ENTRIES, ...COMMAND },
    {
      dir,
      chunkFileNames: ({ moduleIds }) =>
        `${moduleIds.some(isOfEntries) ? "chunks" : "cli"}/[name].js`,
      // Minified for a faster import. The names of functions and classes stay, for stack traces.
      // Compression would remove the functions around declarations that `pureDeclarations` marks.
      minify: { compress: false, mangle: { toplevel: false, keepNames: true }, codegen: true },
    },
    groups,
    [pureDeclarations(), shortLines()],
  );
  await write(ENTRIES, { dir }, folderChunks(FOLDERS, ".d"), [
    dts({ generator: "oxc", tsconfig: false, emitDtsOnly: true }),
    { name: "declarations", renderChunk: cleanDeclarations },
  ]);
  const isOfCommand = (name) => name.startsWith("cli/");
  const wrong = chunks.find(({ fileName, imports }) =>
    !isOfCommand(fileName) && imports.some(isOfCommand)
  );
  if (wrong !== undefined) {
    throw new Error(`Cannot bundle the library: ${wrong.fileName} needs a file of the command`);
  }
  const modulesOf = (which) =>
    chunks.filter(({ fileName }) => isOfCommand(fileName) === which)
      .flatMap(({ moduleIds }) => moduleIds);
  return { library: modulesOf(false), command: modulesOf(true) };
}

/**
 * References the library with `AsyncDisposable`, so that declarations compile with `lib: es2023`.
 * The sources cannot contain the reference, because JSR rejects it. Removes imports without names:
 * the bundler leaves them behind, and they would require packages whose types are not used.
 */
function cleanDeclarations(code) {
  const own = code.replace(/^import "[^"]+";\n/gm, "");
  return /asyncDispose|AsyncDisposable/.test(own)
    ? `/// <reference lib="esnext.disposable" />\n${own}`
    : own;
}

/**
 * The initialisers that esbuild, Rollup and Bun all recognise as pure. Other initialisers are moved
 * into a function whose call is marked as pure.
 */
const PURE = {
  Literal: () => true,
  Identifier: () => true,
  FunctionExpression: () => true,
  ArrowFunctionExpression: () => true,
  TemplateLiteral: ({ expressions }) => expressions.length === 0,
  UnaryExpression: ({ argument }) => argument.type === "Literal",
  ArrayExpression: ({ elements }) => elements.every((item) => item !== null && isPure(item)),
  ObjectExpression: ({ properties }) =>
    properties.every(({ type, computed, value }) =>
      type === "Property" && !computed && isPure(value)
    ),
  NewExpression: ({ callee, arguments: args }) =>
    /^(Weak)?(Map|Set)$/.test(callee.name) && args.length === 0,
  ClassExpression: ({ superClass, body }) =>
    (superClass === null || superClass.type === "Identifier") &&
    body.body.every((member) =>
      member.type !== "StaticBlock" && !member.computed && (member.decorators ?? []).length === 0 &&
      !(member.static && member.type === "PropertyDefinition" && member.value !== null &&
        !isPure(member.value))
    ),
};

function isPure(node) {
  return PURE[node.type]?.(node) ?? false;
}

/**
 * A plugin of the bundler that marks the declarations at the top level of a chunk as free of side
 * effects. With `"sideEffects": false` bundlers omit unused files. Within a chunk of many files they
 * omit a declaration only if they can prove that it is pure.
 */
function pureDeclarations() {
  return {
    name: "pure-declarations",
    renderChunk(code, { fileName }) {
      // Nothing imports the command.
      if (fileName.startsWith("cli/")) return undefined;
      const text = new RolldownMagicString(code, { filename: fileName });
      for (const statement of parseAst(code).body) {
        const declarations = statement.type === "VariableDeclaration" ? statement.declarations : [];
        for (const { id, init } of declarations) {
          if (id.type !== "Identifier" || init === null || isPure(init)) continue;
          text.appendRight(init.start, "/* @__PURE__ */ (() => (");
          // A class without a name has the name of the variable.
          if (init.type === "ClassExpression" && init.id === null) {
            text.appendLeft(init.start + "class".length, ` ${id.name}`);
          }
          text.appendLeft(init.end, "))()");
        }
      }
      return text.hasChanged()
        ? { code: text.toString(), map: text.generateMap({ hires: "boundary" }).toString() }
        : undefined;
    },
  };
}

/**
 * A plugin of the bundler that begins each statement on a line of its own, because Node and Bun print
 * the whole line of an error that nothing catches.
 */
function shortLines() {
  return {
    name: "short-lines",
    generateBundle(_, files) {
      for (const file of Object.values(files)) {
        if (file.type !== "chunk") continue;
        const text = new RolldownMagicString(file.code);
        const visit = (node) => {
          if (Array.isArray(node?.body)) {
            node.body.forEach((one) => text.appendLeft(one.start, "\n"));
          }
          if (typeof node === "object") Object.values(node ?? {}).forEach(visit);
        };
        visit(parseAst(file.code));
        file.code = text.toString().trimStart();
      }
    },
  };
}
