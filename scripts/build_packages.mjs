// `npm run build:packages`: the packages for npm, all of one version.
//
// - `@plue/tools`: the library
// - `@plue/cli`: the command `plue`
// - `@plue/nats`: the library's entry for NATS, with the packages that it needs
// - `@plue/native`: libplue for hosts in other languages. npm installs with it the package for the
//   platform, `@plue/native-<platform>`, in which Zig has compiled libplue.
//
// Usage: node scripts/build_packages.mjs [--out folder] [--only tools,cli,linux-x64,…]

import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, posix, relative, resolve } from "node:path";
import { readOptions } from "./lib/options.mjs";
import { pageAddress, replaceLinks, ROOT } from "./lib/paths.mjs";
import { capture, fail } from "./lib/process.mjs";
import { findZig } from "./setup.mjs";

/** The platforms, with their names for Zig and for npm. */
const LINUX = { os: "linux", libc: "glibc" };
const MUSL = { os: "linux", libc: "musl" };
const PLATFORMS = {
  "linux-x64": { ...LINUX, cpu: "x64", zig: "x86_64-linux-gnu.2.28" },
  "linux-arm64": { ...LINUX, cpu: "arm64", zig: "aarch64-linux-gnu.2.28" },
  "linux-x64-musl": { ...MUSL, cpu: "x64", zig: "x86_64-linux-musl" },
  "linux-arm64-musl": { ...MUSL, cpu: "arm64", zig: "aarch64-linux-musl" },
  "darwin-x64": { os: "darwin", cpu: "x64", zig: "x86_64-macos" },
  "darwin-arm64": { os: "darwin", cpu: "arm64", zig: "aarch64-macos" },
};
const NAMES = ["tools", "cli", "nats", "native", ...Object.keys(PLATFORMS)];
const FFI = join(ROOT, "ffi");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
// Users of the package do not need its development scripts and packages.
const { scripts: _scripts, devDependencies, ...published } = manifest;
const { version, license, repository, engines, peerDependencies } = published;
/** Packages that the command uses where an app has installed them. */
const OF_APPS = ["koffi", "pg", "redis"];

async function run(command, args, options) {
  const { code, output } = await capture(command, args, options);
  if (code !== 0) {
    fail(`Cannot build the packages: ${command} ${args.join(" ")} failed:\n${output}`);
  }
}

/** Writes the manifest of a package, with the fields that all have, its licence and its README. */
function finish(folder, name, description, fields) {
  const manifest = { name, description, version, license, repository, type: "module", ...fields };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  copy(ROOT, ["LICENSE"], folder);
  const readme = join(folder, "README.md");
  const text = existsSync(readme)
    ? readFileSync(readme, "utf8")
    : `# ${name}\n\n${description}.\n\nAll guides as one text: \`dist/llms.txt\` of \`@plue/cli\`.\n`;
  const home = name === "@plue/native" ? "ffi" : "";
  // A link to a file that the package lacks becomes an address.
  const toLink = (link) =>
    existsSync(join(folder, link.replace(/#.*/, ""))) ? link : pageAddress(posix.join(home, link));
  writeFileSync(readme, replaceLinks(text, toLink));
}

/** Copies files of the project into a package. */
function copy(from, names, folder) {
  for (const name of names) cpSync(join(from, name), join(folder, name), { recursive: true });
}

function peersWhere(test) {
  return Object.fromEntries(Object.entries(peerDependencies).filter(([name]) => test(name)));
}

/** Writes the package `@plue/tools`. */
function buildTools(folder) {
  const isOfCommand = (file) => relative(dist, file).startsWith("cli");
  cpSync(dist, join(folder, "dist"), { recursive: true, filter: (file) => !isOfCommand(file) });
  copy(ROOT, ["README.md", "CHANGELOG.md"], folder);
  finish(folder, published.name, published.description, published);
}

/** Writes the package `@plue/cli`, whose files import the chunks of `@plue/tools`. */
function buildCli(folder) {
  cpSync(join(dist, "cli"), join(folder, "dist"), { recursive: true });
  for (const file of readdirSync(join(folder, "dist")).filter((name) => name.endsWith(".js"))) {
    const path = join(folder, "dist", file);
    const code = readFileSync(path, "utf8").replaceAll(
      /(\bfrom|\bimport\(?)(["`])\.\.\/(chunks\/)?([\w-]+)\.js\2/g,
      (_, before, quote, isChunk, name) =>
        `${before}${quote}@plue/tools/${isChunk ? "internal/" : ""}${name}${quote}`,
    );
    writeFileSync(path, file === "main.js" ? `#!/usr/bin/env node\n${code}` : code);
  }
  chmodSync(join(folder, "dist", "main.js"), 0o755);
  const description = "The command plue: npx @plue/cli serve tools.ts serves the tools of a module";
  copy(join(ROOT, "src", "cli"), ["README.md"], folder);
  finish(folder, "@plue/cli", description, {
    engines,
    bin: { plue: "dist/main.js" },
    // The chunks of another version have other exports.
    dependencies: { "@plue/tools": version, ...peersWhere((name) => !OF_APPS.includes(name)) },
    peerDependencies: peersWhere((name) => OF_APPS.includes(name)),
    peerDependenciesMeta: Object.fromEntries(OF_APPS.map((name) => [name, { optional: true }])),
  });
}

/** Writes the package `@plue/nats`: the entry of `@plue/tools`, and the packages of NATS. */
function buildNats(folder) {
  for (const ending of ["js", "d.ts"]) {
    writeFileSync(join(folder, `index.${ending}`), 'export * from "@plue/tools/nats";\n');
  }
  const transport = "@nats-io/transport-node";
  finish(folder, "@plue/nats", "The entry @plue/tools/nats, with the packages that it needs", {
    engines,
    sideEffects: false,
    exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
    dependencies: {
      "@plue/tools": version,
      ...peersWhere((name) => name.startsWith("@nats-io/")),
      [transport]: `^${devDependencies[transport]}`,
    },
  });
}

/** Writes the package `@plue/native`: what a host compiles and reads, and the sidecar. */
function buildNative(folder) {
  const names = ["include", "src", "cmake", "examples", "python", "rust", "Makefile"];
  copy(FFI, [...names, "plue.pc.in", "plue.map", "README.md", "PROTOCOL.md"], folder);
  cpSync(script, join(folder, "plue-sidecar.js"));
  finish(folder, "@plue/native", "libplue: the tools of @plue/tools for hosts in C and others", {
    preferUnplugged: true,
    files: [
      ...[...names, "plue.pc.in", "plue.map", "PROTOCOL.md", "plue-sidecar.js"],
      ...["!python/test", "!python/**/__pycache__", "!rust/target", "!rust/tests"],
    ],
    dependencies: { "@plue/tools": version },
    optionalDependencies: Object.fromEntries(
      Object.keys(PLATFORMS).map((name) => [`@plue/native-${name}`, version]),
    ),
  });
}

/**
 * A text file that linkers read instead of the symbolic link `libplue.so` or `libplue.dylib`. Npm
 * tarballs cannot contain links, and with a second copy of the library a program could load both.
 */
function linkText({ zig, os }) {
  if (os === "linux") return ["libplue.so", "/* GNU ld script */\nINPUT(libplue.so.1)\n"];
  const target = zig.replace("aarch64", "arm64");
  const symbols = readFileSync(join(FFI, "plue.map"), "utf8").match(/\bplue_\w+(?=;)/g)
    .map((symbol) => `_${symbol}`).join(", ");
  return [
    "libplue.tbd",
    `--- !tapi-tbd
tbd-version: 4
targets: [ ${target} ]
install-name: '@rpath/libplue.1.dylib'
compatibility-version: 1
exports:
  - targets: [ ${target} ]
    symbols: [ ${symbols} ]
...
`,
  ];
}

/** Writes the package of a platform: the files of `make install`, and the sidecar as a script. */
async function buildPlatform(name, folder, env) {
  const platform = PLATFORMS[name];
  const build = join(out, "build", name);
  const library = join(folder, "lib");
  const isLinux = platform.os === "linux";
  await run("make", [
    ...["-s", "-C", FFI, "install", `BUILD=${build}`, `PREFIX=${folder}`],
    ...[`LIBEXECDIR=${library}`, `SYSTEM=${isLinux ? "Linux" : "Darwin"}`, "DEPENDENCIES="],
    `SRC=${sources}`,
    ...[`CC=zig cc -target ${platform.zig}`, "AR=zig ar", "CFLAGS=-O2 -g0"],
    // Zig would compile its runtime library for each platform, and the linker would use none of it.
    "LDFLAGS=-s -nostdlib -lc",
  ], { env });
  rmSync(join(library, isLinux ? "libplue.so" : "libplue.dylib"));
  const [link, text] = linkText(platform);
  writeFileSync(join(library, link), text);
  const sidecar = join(library, "plue-sidecar.js");
  cpSync(script, sidecar);
  chmodSync(sidecar, 0o755);
  const { os, cpu, libc } = platform;
  const description = `libplue for ${name}, which npm installs with @plue/native`;
  finish(folder, `@plue/native-${name}`, description, {
    // Linkers need files, so the package must not stay in an archive.
    preferUnplugged: true,
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
  });
}

const usage = "Usage: node scripts/build_packages.mjs [--out folder] [--only name,…]";
const { options } = readOptions(process.argv.slice(2), usage, { out: [], only: NAMES });
const out = resolve(options.out?.[0] ?? join(ROOT, "build", "packages"));
const only = options.only ?? NAMES;
mkdirSync(out, { recursive: true });
const dist = join(out, "build", "dist");
const script = join(out, "build", "plue-sidecar.js");
// At a fixed path, because Zig's cache uses the paths of the sources.
const sources = join(FFI, "build", "amalgamation");
const zig = only.some((name) => name in PLATFORMS) ? await findZig() : {};
if (zig.missing !== undefined) fail(`Cannot build the packages: ${zig.missing}`);
if (only.includes("tools") || only.includes("cli")) {
  await run(process.execPath, ["scripts/build.mjs", dist]);
}
if (only.includes("native") || zig.env !== undefined) {
  const main = join(FFI, "sidecar", "main.ts");
  await run("bun", ["build", main, "--target=node", "--minify", `--outfile=${script}`]);
  // The sources are in one file, because Zig takes longer to start than to compile.
  await run(process.execPath, ["scripts/amalgamate.mjs", sources]);
}

const BUILDERS = { tools: buildTools, cli: buildCli, nats: buildNats, native: buildNative };

async function build(name) {
  const folder = join(out, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  if (name in BUILDERS) BUILDERS[name](folder);
  else await buildPlatform(name, folder, zig.env);
  console.log(`Built ${relative(ROOT, folder)}`);
}
const queue = [...only];
// Two at a time.
await Promise.all([1, 2].map(async () => {
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) await build(name);
}));
const args = ["pack", "--ignore-scripts", "--silent", "--pack-destination", out];
await run("npm", [...args, ...only.map((name) => `./${name}`)], { cwd: out });
rmSync(join(out, "build"), { recursive: true, force: true });
