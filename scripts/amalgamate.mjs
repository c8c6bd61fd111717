// `node scripts/amalgamate.mjs [folder]`: writes libplue as two files, `plue.c` and `plue.h`, for
// projects that add it to their own sources. The files of `ffi/src` share no name, so this only puts
// them one after the other.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

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

/** A file with the headers that it needs in their places, each once. */
function inline(path, done) {
  return readFileSync(path, "utf8").replace(/^#include "(.+)"\n/gm, (_line, name) => {
    if (done.has(name)) return "";
    done.add(name);
    const header = [SOURCES, PUBLIC].map((folder) => join(folder, name)).find(existsSync);
    if (header === undefined) throw new Error(`Cannot amalgamate libplue: there is no "${name}"`);
    return inline(header, done);
  });
}

const folder = process.argv[2] ?? join(FFI, "build", "amalgamation");
const done = new Set(["plue.h"]);
const files = readdirSync(SOURCES).filter((name) => name.endsWith(".c")).sort();
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "plue.h"), readFileSync(join(PUBLIC, "plue.h")));
writeFileSync(
  join(folder, "plue.c"),
  [HEAD, ...files.map((name) => inline(join(SOURCES, name), done))].join("\n"),
);
console.log(`Wrote plue.c and plue.h to ${folder}`);
