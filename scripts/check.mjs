// `npm run check`: the quick gate of `npm test`.

process.argv.splice(2, Infinity, "--only", "types,architecture,format,lint");
await import("./test.mjs");
