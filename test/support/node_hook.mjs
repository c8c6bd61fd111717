// Resolves on Node what `imports` of deno.json resolves on Deno.
// Used as `node --import ./test/support/node_hook.mjs --test`.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const manifest = new URL("../../deno.json", import.meta.url);
const urls = new Map(
  Object.entries(JSON.parse(readFileSync(manifest, "utf8")).imports)
    .map(([specifier, path]) => [specifier, new URL(path, manifest).href]),
);

registerHooks({
  resolve(specifier, context, next) {
    const url = urls.get(specifier);
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});
