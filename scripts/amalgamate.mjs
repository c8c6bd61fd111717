// `node scripts/amalgamate.mjs [folder]`: writes libplue as two files, `plue.c` and `plue.h`, for
// projects that add it to their own sources.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const FFI = join(import.meta.dirname, "..", "ffi");
const SOURCES = join(FFI, "src");
const PUBLIC = join(FFI, "include");

const HEAD = `/* libplue in one file, made of the files of ffi/src by scripts/amalgamate.mjs:
 *
 *   cc -c plue.c -pthread -fno-unwind-tables -fno-asynchronous-unwind-tables
 *
 * Without unwinding tables an exception that leaves a callback ends the process, as it should. Link
 * with -pthread, and with -ldl where the system has it. The functions are described in plue.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include "plue.h"
`;

/** Returns a file in which each header replaces its first #include. */
function inline(path, done) {
  const text = readFileSync(path, "utf8").replace(/^#pragma once\n/m, "");
  return text.replace(/^#include "(.+)"\n/gm, (_line, name) => {
    if (done.has(name)) return "";
    done.add(name);
    const header = [SOURCES, PUBLIC].map((folder) => join(folder, name)).find(existsSync);
    if (header === undefined) throw new Error(`Cannot amalgamate libplue: there is no "${name}"`);
    return inline(header, done);
  });
}

/** The static functions and variables of a file. */
function ownNames(text) {
  const lines = text.match(/^(?:static |\} \w).*$/gm) ?? [];
  return new Set(lines.map((line) => /(\w+)(?:\(|\[| =|;| PLUE_GUARDED)/.exec(line)?.[1] ?? ""));
}

const listed = (ending) =>
  readdirSync(SOURCES).filter((name) => name.endsWith(ending)).sort()
    .map((name) => join(SOURCES, name));
const done = new Set(["plue.h"]);
const headers = listed(".h").filter((path) => !done.has(basename(path)))
  .map((path) => done.has(basename(path)) ? "" : inline(path, done.add(basename(path))));
const bodies = listed(".c").map((path) => ({
  name: basename(path, ".c"),
  text: inline(path, done),
}));
const owners = new Map();
for (const { text } of bodies) {
  for (const name of ownNames(text)) owners.set(name, (owners.get(name) ?? 0) + 1);
}

/** Matches words; and as one piece each: strings, comments, and uses and fields of structs. */
const PIECES =
  /\bstruct(?: \w+)? \{[^}]*\}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\/\*[^]*?\*\/|(?:\.|->)\w+|\w+/g;

/** Returns a file, with its name before static names that another file also has. */
function section({ name: file, text }) {
  const own = ownNames(text);
  const renamed = text.replace(
    PIECES,
    (word) => own.has(word) && owners.get(word) > 1 ? `${file}_${word}` : word,
  );
  return `/* ${"-".repeat(80 - file.length)} ${file}.c */\n\n${renamed}`;
}

const folder = process.argv[2] ?? join(FFI, "build", "amalgamation");
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "plue.h"), readFileSync(join(PUBLIC, "plue.h")));
writeFileSync(join(folder, "plue.c"), [HEAD, ...headers, ...bodies.map(section)].join("\n"));
console.log(`Wrote plue.c and plue.h to ${folder}`);
