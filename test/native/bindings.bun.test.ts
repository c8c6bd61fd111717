// The statuses, options and functions of plue.h that the bindings repeat.

import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { codeOf, flagsOf, STATUS } from "../../src/adapters/native/replies.ts";
import { exportedSymbols, ROOT } from "./support.ts";

function textOf(...files: readonly string[]): string {
  return files.map((file) => readFileSync(join(ROOT, "ffi", file), "utf8")).join("");
}

/** The first groups of the matches of a pattern, in lower case and without underscores. */
function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = ""]) => name.toLowerCase().replaceAll("_", ""));
}

/** The matches of a pattern with a name and a number. */
function numbersIn(text: string, pattern: RegExp): { readonly [name: string]: number } {
  const names = namesIn(text, pattern);
  return Object.fromEntries(
    [...text.matchAll(pattern)].map(([, , n], at) => [names[at], Number(n)]),
  );
}

const header = textOf("include/plue.h");
const [struct = ""] = /typedef struct \{\s+size_t struct_size[^]*?\} plue_options_t/.exec(header) ??
  [];
const fields = namesIn(struct, /^ {4}[\w *]+?(\w+);/gm);
const statuses = numbersIn(header, /^ {4}PLUE_(?!MODE_|RESULT_)(\w+) = (\d+)/gm);
const functions = exportedSymbols().filter((name) => !name.startsWith("plue_guest_"));

const python = {
  errors: textOf("python/plue/_errors.py"),
  native: textOf("python/plue/_native.py"),
};

describe("plue.h", () => {
  it("has statuses, options and functions", () => {
    assertEquals([statuses["ok"], statuses["other"]], [0, 127]);
    assertEquals(functions.includes("plue_tool_call"), true);
    assertEquals([fields[0], fields.includes("calltimeoutms")], ["structsize", true]);
  });
});

describe("each binding, of which the tools side is one, has", () => {
  it("each status", () => {
    const cpp = [...textOf("include/plue.hpp").matchAll(/^ {4}(\w+) = PLUE_(\w+),?$/gm)];
    assertEquals(cpp.map(([, name = ""]) => name.replaceAll("_", "")), Object.keys(statuses));
    assertEquals(cpp.filter(([, name = "", status]) => name.toUpperCase() !== status), []);
    assertEquals(numbersIn(python.errors, /^ {4}([A-Z_]+) = (\d+)$/gm), statuses);
    const classes = namesIn(python.errors, /^class \w+\(.*, code=Code\.(\w+)\):/gm);
    assertEquals(["ok", ...classes, "other"].sort(), Object.keys(statuses).sort());
    const { ok: _noCode, ...codes } = statuses;
    assertEquals(numbersIn(textOf("rust/src/error.rs"), /^ {4}(\w+) = (\d+),$/gm), codes);
    for (const [code, number] of Object.entries(STATUS)) {
      assertEquals([code, number], [code, statuses[code.replaceAll("_", "")]]);
    }
    assertEquals([3, 13, 0, 127].map(codeOf), ["denied", "threw", "threw", "threw"]);
  });

  it("each flag of a result", () => {
    const plain = { ok: true, content: null, durationMs: 0 } as const;
    assertEquals(numbersIn(header, /^ {4}PLUE_RESULT_([A-Z]+) = (\d+)/gm), {
      blocks: flagsOf({ ...plain, blocks: true }),
      truncated: flagsOf({ ...plain, truncated: true }),
      replayed: flagsOf({ ...plain, replayed: true }),
      repaired: flagsOf({ ...plain, repaired: [{ path: "", message: "" }] }),
    });
    assertEquals([flagsOf(plain), flagsOf({ ...plain, blocks: true, replayed: true })], [0, 5]);
  });

  it("each option", () => {
    const [ofPython = ""] = /class Options[^]*?\n {4}\]/.exec(python.native) ?? [];
    assertEquals(namesIn(ofPython, /\("(\w+)",/g), fields);
    const [ofRust = ""] = /struct plue_options_t \{[^]*?\n\}/.exec(textOf("rust/src/sys.rs")) ?? [];
    assertEquals(namesIn(ofRust, /pub (\w+):/g), fields);
  });

  it("calls, questions, tasks, tools and their aborts", () => {
    const wanted = functions.filter((name) =>
      /^plue_(tool_(?!list|execute)|set_question|.*on_abort|.*result_flags)/.test(name)
    );
    assertEquals(wanted.length, 11);
    for (
      const source of [
        textOf("include/plue.hpp"),
        textOf("python/plue/_calls.py", "python/plue/_tools.py"),
        textOf("rust/src/call.rs", "rust/src/tool.rs"),
      ]
    ) {
      assertEquals(wanted.filter((name) => !source.includes(name)), []);
    }
  });

  it("no function that libplue does not export", () => {
    for (const source of [python.native, textOf("rust/src/sys.rs")]) {
      const own = source.match(/\bplue_\w+(?="?[:(])/g) ?? [];
      assertEquals(own.length > 30, true);
      assertEquals(own.filter((name) => !functions.includes(name) && !name.endsWith("_t")), []);
    }
  });
});
