// `npm run build:packages`: the packages for npm. They are `@plue/tools` and, for each platform, a
// package with libplue, which npm installs on that platform (`optionalDependencies`). Zig compiles
// libplue for all platforms.
// Usage: node scripts/build_packages.mjs [--out folder] [--only tools,linux-x64,…]

import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
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
const NAMES = ["tools", ...Object.keys(PLATFORMS)];
const FFI = join(ROOT, "ffi");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
// Users of the package do not need its development scripts and packages.
const { scripts: _scripts, devDependencies: _devDependencies, ...published } = manifest;
const { version, license, files } = published;

async function run(command, args, options) {
  const { code, output } = await capture(command, args, options);
  if (code !== 0) {
    fail(`Cannot build the packages: ${command} ${args.join(" ")} failed:\n${output}`);
  }
}

function writeManifest(folder, manifest) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/** Replaces imports of sources in the examples by the entries of the package. */
function importEntries(folder) {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8"));
  const entries = new Map(
    Object.entries(exports).map(([entry, file]) => [join(ROOT, file), entry.replace(".", name)]),
  );
  for (const file of readdirSync(folder, { recursive: true })) {
    // The manifest excludes tests.
    if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
    const home = dirname(join(ROOT, "examples", file));
    const text = readFileSync(join(folder, file), "utf8");
    const changed = text.replaceAll(/(?<=\bfrom ")\.[^"]+(?=";$)/gm, (path) => {
      const source = join(home, path);
      if (!relative(join(ROOT, "examples"), source).startsWith("..")) return path;
      const entry = entries.get(source);
      if (entry === undefined) {
        fail(`Cannot build: examples/${file} imports ${path}, which is not an entry`);
      }
      return entry;
    });
    writeFileSync(join(folder, file), changed);
  }
}

/** Writes the package `@plue/tools`. */
async function buildTools(folder) {
  await run(process.execPath, ["scripts/build.mjs", join(folder, "dist")]);
  for (const file of files.filter((name) => name !== "dist" && existsSync(join(ROOT, name)))) {
    cpSync(join(ROOT, file), join(folder, file), { recursive: true });
  }
  importEntries(join(folder, "examples"));
  // Not in the repository's package.json: `npm ci` would fetch them before their publication.
  const optionalDependencies = Object.fromEntries(
    Object.keys(PLATFORMS).map((name) => [`@plue/native-${name}`, version]),
  );
  writeManifest(folder, { ...published, optionalDependencies });
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
async function buildNative(name, folder, { script, env }) {
  const platform = PLATFORMS[name];
  const build = join(out, "build", name);
  const library = join(folder, "lib");
  const isLinux = platform.os === "linux";
  await run("make", [
    ...["-s", "-C", FFI, "install", `BUILD=${build}`, `PREFIX=${folder}`],
    ...[`LIBEXECDIR=${library}`, `SYSTEM=${isLinux ? "Linux" : "Darwin"}`, "DEPENDENCIES="],
    `SRC=${sources}`,
    ...[`CC=zig cc -target ${platform.zig}`, "AR=zig ar", "CFLAGS=-O2 -g0", "LDFLAGS=-s"],
  ], { env });
  rmSync(join(library, isLinux ? "libplue.so" : "libplue.dylib"));
  const [link, text] = linkText(platform);
  writeFileSync(join(library, link), text);
  const sidecar = join(library, "plue-sidecar.js");
  cpSync(script, sidecar);
  chmodSync(sidecar, 0o755);
  cpSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  const { os, cpu, libc } = platform;
  writeFileSync(
    join(folder, "README.md"),
    `# libplue for ${name}

The native library of [\`@plue/tools\`](https://www.npmjs.com/package/@plue/tools), which installs it
where it fits. \`npx plue native --cflags --libs\` prints how to compile and link with it.
`,
  );
  writeManifest(folder, {
    name: `@plue/native-${name}`,
    version,
    description: `libplue, the native library of @plue/tools, for ${name}`,
    license,
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
const script = join(out, "build", "plue-sidecar.js");
// At a fixed path, because Zig's cache uses the paths of the sources.
const sources = join(FFI, "build", "amalgamation");
const isNative = only.some((name) => name !== "tools");
const zig = isNative ? await findZig() : {};
if (zig.missing !== undefined) fail(`Cannot build the packages: ${zig.missing}`);
if (isNative) {
  const main = join(FFI, "sidecar", "main.ts");
  await run("bun", ["build", main, "--target=node", "--minify", `--outfile=${script}`]);
  // The sources are in one file, because Zig takes longer to start than to compile.
  await run(process.execPath, ["scripts/amalgamate.mjs", sources]);
}

async function build(name) {
  const folder = join(out, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  if (name === "tools") await buildTools(folder);
  else await buildNative(name, folder, { script, env: zig.env });
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
