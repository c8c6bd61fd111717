/**
 * Bundles the command `plue` with its packages into one file for Node, Bun and Deno, writes the
 * licences of the packages, and bundles `plue-sidecar.js`. Usage: `bun scripts/build_cli.ts dist`.
 *
 * @module
 */

import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { licencesOf } from "./lib/licences.mjs";

const ROOT = join(import.meta.dirname, "..");
const folder = process.argv[2] ?? join(ROOT, "dist");
/** The hidden specifier in an adapter: bundles for Workers then omit the transport for programs. */
const HIDDEN = '["@modelcontextprotocol", "client", "stdio"].join("/")';
const JSONC = join(ROOT, "node_modules/jsonc-parser/lib/esm/main.js");

const result = await Bun.build({
  entrypoints: [join(ROOT, "src/cli/main.ts")],
  root: ROOT,
  outdir: folder,
  naming: "cli.js",
  banner: "#!/usr/bin/env node",
  target: "node",
  minify: true,
  // The MCP SDK then omits Ajv, which the command does not use: 75 kB less, compressed.
  conditions: ["workerd"],
  // These packages are loaded only if a user has installed them.
  external: ["koffi", "pg", "redis"],
  metafile: true,
  plugins: [{
    name: "unhide",
    setup(build) {
      build.onLoad({ filter: /src[\\/]adapters[\\/]mcp[\\/]open_client\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, "utf8");
        if (!text.includes(HIDDEN)) throw new TypeError(`Cannot find ${HIDDEN} in ${path}`);
        return { contents: text.replace(HIDDEN, '"@modelcontextprotocol/client/stdio"') };
      });
      // The other form of this package is UMD, in which bundlers cannot follow `require`.
      build.onResolve({ filter: /^jsonc-parser$/ }, () => ({ path: JSONC }));
    },
  }],
});
// The process that runs the tools of libplue. The Makefile installs it with the library.
await Bun.build({
  entrypoints: [join(ROOT, "ffi/sidecar/main.ts")],
  outdir: folder,
  naming: "plue-sidecar.js",
  target: "node",
  minify: true,
});
copyFileSync(join(ROOT, "src/cli/gateway/plue.schema.json"), join(folder, "plue.schema.json"));
const inputs = Object.keys(result.metafile?.inputs ?? {});
const licences = licencesOf("The command plue (cli.js) contains these packages.", inputs, ROOT);
await Bun.write(join(folder, "cli.LICENSES.txt"), licences);
