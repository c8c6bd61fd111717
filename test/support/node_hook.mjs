// Resolves on Node what `imports` of deno.json and `paths` of tsconfig.json resolve elsewhere.
// Used as `node --import ./test/support/node_hook.mjs --test`.

import { registerHooks } from "node:module";

const at = (path) => new URL(`../../${path}`, import.meta.url).href;

const MAP = new Map([
  ["bun:test", at("test/support/node_runner.ts")],
  ["@std/assert", at("test/support/std_assert.js")],
  ["@plue/tools", at("mod.ts")],
  ["@plue/tools/core", at("src/core.ts")],
  ["@plue/tools/ajv", at("src/adapters/ajv/mod.ts")],
  ["@plue/tools/hono", at("src/adapters/hono/mod.ts")],
]);

registerHooks({
  resolve: (specifier, context, next) => {
    const url = MAP.get(specifier);
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});
