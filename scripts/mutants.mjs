// `npm run mutants`: changes the sources in random places, one at a time, and counts the changes that
// the tests catch. The same places for a seed. Not StrykerJS, which needs a plugin for each runner.

import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
import { capture } from "./lib/process.mjs";

/** The folders of `src` that are changed, the number of changes, and how many must be caught. */
const AREAS = {
  core: { folders: ["tool", "schema", "select", "registry", "execute"], count: 36, wanted: 34 },
  adapters: { folders: ["adapters"], count: 24, wanted: 22 },
};
const SWAPS = {
  ...{ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" },
  ...{ "*": "/", "/": "*", "&&": "||", "||": "&&", "??": "&&" },
};

/** The changes of one node, as a function of its text: the start, the end and the new text. */
function* changesOf(node, text) {
  const at = ({ start, end }) => text.slice(start, end);
  if (node.type === "BinaryExpression" || node.type === "LogicalExpression") {
    const between = { start: node.left.end, end: node.right.start };
    const swapped = SWAPS[node.operator];
    // Additions of text have no opposite.
    const isText = node.operator === "+" && /["'`]/.test(at(node));
    if (swapped !== undefined && !isText) {
      yield { ...between, to: at(between).replace(node.operator, swapped) };
    }
  } else if (node.type === "IfStatement" || node.type === "ConditionalExpression") {
    for (const to of ["true", "false"]) yield { ...node.test, to };
  } else if (node.type === "UnaryExpression" && node.operator === "!") {
    yield { ...node, to: at(node.argument) };
  } else if (node.type === "Literal" && typeof node.value === "boolean") {
    yield { ...node, to: String(!node.value) };
  } else if (node.type === "Literal" && typeof node.value === "number") {
    yield { ...node, to: String(node.value + 1) };
  } else if (node.type === "ExpressionStatement" && !node.directive) {
    yield { ...node, to: ";" };
  } else if (node.type === "ReturnStatement" && node.argument !== null) {
    yield { ...node.argument, to: "undefined" };
  }
}

/** Walks code, without types. */
function* walk(node) {
  if (Array.isArray(node)) { for (const item of node) yield* walk(item); }
  else if (typeof node?.type === "string") {
    if (/^(TS.*(Declaration|Annotation|Instantiation)|Import.*)$/.test(node.type)) return;
    yield node;
    for (const child of Object.values(node)) if (typeof child === "object") yield* walk(child);
  }
}

function mutantsOf(file) {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...walk(parseAst(text, { lang: "ts" }).body)].flatMap((node) =>
    [...changesOf(node, text)].map(({ start, end, to }) => ({ file, start, end, to, text }))
  );
}

/** Numbers from 0 to 1 that follow from the seed (mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6D2B79F5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const usage = "Usage: npm run mutants [-- --only area --seed number]";
const known = { only: Object.keys(AREAS), seed: [] };
const { options } = readOptions(process.argv.slice(2), usage, known);
const copy = mkdtempSync(join(tmpdir(), "plue-mutants-"));
const { stdout: listed } = await capture("git", ["ls-files", "-co", "--exclude-standard"]);
for (const file of listed.trim().split("\n").filter((name) => existsSync(join(ROOT, name)))) {
  cpSync(join(ROOT, file), join(copy, file));
}
symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));

const tests = ["unit", "adapters"].flatMap((suite) =>
  readdirSync(join(copy, "test", suite), { recursive: true })
    .filter((name) => name.endsWith(".test.ts")).map((name) => `./test/${suite}/${name}`)
);

/** True if a test fails: of those named like the file, of its folder, or of all. */
async function isCaught(file) {
  const folder = `/${dirname(file).split("/")[file.startsWith("src/adapters/") ? 2 : 1]}/`;
  const name = `/${basename(file, ".ts")}`;
  const steps = [
    tests.filter((test) => test.includes(folder) && test.includes(name)),
    tests.filter((test) => test.includes(folder)),
    tests,
  ];
  for (const files of steps.filter(({ length }) => length > 0)) {
    const args = ["test", "--bail", "--timeout=60000", ...files];
    const { code } = await capture("bun", args, { cwd: copy, timeoutMs: 300_000 });
    if (code !== 0) return true;
  }
  return false;
}

for (const [name, { folders, count, wanted }] of Object.entries(AREAS)) {
  if (options.only?.includes(name) === false) continue;
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, "src", folder), { recursive: true }).filter((path) =>
      path.endsWith(".ts")
    )
      .map((path) => `src/${folder}/${path}`)
  ).sort();
  const all = files.flatMap(mutantsOf);
  const random = randomFrom(Number(options.seed?.[0] ?? 24));
  let caught = 0;
  const chosen = Array.from({ length: count }, () => all[Math.floor(random() * all.length)]);
  for (const { file, start, end, to, text } of chosen) {
    writeFileSync(join(copy, file), text.slice(0, start) + to + text.slice(end));
    const isFound = await isCaught(file);
    writeFileSync(join(copy, file), text);
    if (isFound) caught++;
    const before = text.slice(0, start).split("\n");
    const [rest = ""] = text.slice(end).split("\n");
    const line = `${before.at(-1).trimStart()}[${text.slice(start, end)} -> ${to}]${rest}`;
    console.log(`${isFound ? "caught  " : "SURVIVED"} ${file}:${before.length}  ${line}`);
  }
  console.log(`${name}: ${caught} of ${count} caught, at least ${wanted} wanted, of ${all.length}`);
  if (caught < wanted) process.exitCode = 1;
}
rmSync(copy, { recursive: true });
