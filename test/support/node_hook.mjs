// Resolves on Node the `imports` that deno.json resolves on Deno, except for the test runner. Used
// as `node --import ./test/support/node_hook.mjs --test`.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const manifest = new URL("../../deno.json", import.meta.url);
const imports = {
  ...JSON.parse(readFileSync(manifest, "utf8")).imports,
  "bun:test": "./test/support/runner.ts",
};
const urls = new Map(
  Object.entries(imports).map(([specifier, path]) => [specifier, new URL(path, manifest).href]),
);

registerHooks({
  resolve(specifier, context, next) {
    const url = urls.get(specifier);
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});
