// `npm run mutants`: changes the sources in some places, one at a time, and counts the changes that
// the tests catch. The seed decides the places. StrykerJS would need a plugin for each runner.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
import { capture } from "./lib/process.mjs";

/** The folders of `src` that are changed, the number of changes, and the number to be caught. */
const AREAS = {
  core: { folders: ["tool", "schema", "select", "registry", "execute"], count: 36, wanted: 34 },
  adapters: { folders: ["adapters"], count: 24, wanted: 22 },
};
const SWAPS = {
  ...{ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" },
  ...{ "*": "/", "/": "*", "&&": "||", "||": "&&", "??": "&&" },
};

/** The replacements of a node, or of the part from `start` to `end`. */
function changesOf(node, text) {
  const { type, operator, value, test, argument, left, right } = node;
  // The addition of texts has no opposite operator.
  const isText = operator === "+" && /["'`]/.test(text.slice(node.start, node.end));
  if (left && SWAPS[operator] && !isText) {
    const [start, end] = [left.end, right.start];
    return [{ start, end, to: text.slice(start, end).replace(operator, SWAPS[operator]) }];
  }
  if (/^(If|Conditional)/.test(type)) return ["true", "false"].map((to) => ({ ...test, to }));
  if (operator === "!") return [{ ...node, to: text.slice(argument.start, argument.end) }];
  if (typeof value === "boolean") return [{ ...node, to: String(!value) }];
  if (typeof value === "number") return [{ ...node, to: String(value + 1) }];
  if (type === "ExpressionStatement" && !node.directive) return [{ ...node, to: ";" }];
  if (type === "ReturnStatement" && argument !== null) return [{ ...argument, to: "undefined" }];
  return [];
}

/** The changes of code, without types. */
function mutantsOf(node, text) {
  if (/^(TS.*(Declaration|Annotation|Instantiation)|Import.*)$/.test(node?.type)) return [];
  const own = typeof node?.type === "string" ? changesOf(node, text) : [];
  const parts = Object.values(node ?? {}).filter((part) => typeof part === "object");
  return [...own, ...parts.flatMap((part) => mutantsOf(part, text))];
}

const filesBelow = (folder, ending) =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .filter((name) => name.endsWith(ending)).map((name) => `${folder}/${name}`).sort();

const usage = "Usage: npm run mutants [-- --only area --seed number]";
const known = { only: Object.keys(AREAS), seed: [] };
const { options } = readOptions(process.argv.slice(2), usage, known);
const copy = mkdtempSync(join(tmpdir(), "plue-mutants-"));
const isOwn = (path) => !/\/(\.git|node_modules|build|coverage|dist|target)$/.test(path);
cpSync(ROOT, copy, { recursive: true, filter: isOwn });
symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
const tests = ["./test/unit", "./test/adapters"].flatMap((name) => filesBelow(name, ".test.ts"));

/** True if a test fails: of those named like the file, of its folder, or of all. */
async function isCaught(file) {
  const [, area, adapter] = file.split("/");
  const near = tests.filter((test) => test.includes(`/${area === "adapters" ? adapter : area}/`));
  const named = near.filter((test) => test.includes(`/${basename(file, ".ts")}`));
  for (const files of [named, near, tests].filter(({ length }) => length > 0)) {
    const args = ["test", "--bail", "--timeout=60000", ...files];
    const { code } = await capture("bun", args, { cwd: copy, timeoutMs: 300_000 });
    if (code !== 0) return true;
  }
  return false;
}

for (const [name, { folders, count, wanted }] of Object.entries(AREAS)) {
  if (options.only?.includes(name) === false) continue;
  const files = folders.flatMap((folder) => filesBelow(`src/${folder}`, ".ts"));
  const all = files.flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return mutantsOf(parseAst(text, { lang: "ts" }).body, text)
      .map((mutant) => ({ ...mutant, file, text }));
  });
  let caught = 0;
  for (let at = 0; at < count; at++) {
    const position = Number(options.seed?.[0] ?? 24) + Math.floor(at * all.length / count);
    const { file, start, end, to, text } = all[position % all.length];
    writeFileSync(join(copy, file), text.slice(0, start) + to + text.slice(end));
    const isFound = await isCaught(file);
    writeFileSync(join(copy, file), text);
    if (isFound) caught++;
    const line = text.slice(0, start).split("\n").length;
    const change = `${text.slice(start, end)} -> ${to}`;
    console.log(`${isFound ? "caught  " : "SURVIVED"} ${file}:${line}  ${change}`);
  }
  console.log(`${name}: ${caught} of ${count} caught, at least ${wanted} wanted, of ${all.length}`);
  if (caught < wanted) process.exitCode = 1;
}
rmSync(copy, { recursive: true });
