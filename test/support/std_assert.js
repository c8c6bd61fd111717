// `@std/assert` for every runtime: denoland/std as it is published on npm.
// @ts-self-types="./std_assert.d.ts"
export * from "deno-std/assert/mod.js";
