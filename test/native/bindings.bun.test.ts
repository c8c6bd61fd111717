// The statuses and functions of plue.h that the bindings repeat.

import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./support.ts";

function textOf(...path: readonly string[]): string {
  return readFileSync(join(ROOT, "ffi", ...path), "utf8");
}

/** The fields of the options, in their order. */
function fieldsIn(
  text: string,
  begin: RegExp,
  field: RegExp,
): readonly (string | undefined)[] {
  const [body = ""] = begin.exec(text) ?? [];
  return [...body.matchAll(field)].map(([, name]) => name);
}

const fields = fieldsIn(
  textOf("include", "plue.h"),
  /typedef struct \{\s+size_t struct_size[^]*?\} plue_options_t/,
  /^ {4}[\w *]+?(\w+);/gm,
);

/** The matches of a pattern with a name and a number. */
function numbersIn(
  text: string,
  pattern: RegExp,
): { readonly [name: string]: number } {
  return Object.fromEntries(
    [...text.matchAll(pattern)].map(([, name, n]) => [name, Number(n)]),
  );
}

const statuses = numbersIn(
  textOf("include", "plue.h"),
  /^ {4}PLUE_(?!MODE_|RESULT_)(\w+) = (\d+)/gm,
);
const flags = numbersIn(textOf("include", "plue.h"), /^ {4}PLUE_RESULT_(\w+) = (\d+)/gm);
const functions = textOf("symbols.txt").match(/^plue_\w+$/gm)
  ?.filter((name) => !name.startsWith("plue_guest_")).sort() ?? [];

describe("plue.h", () => {
  it("has statuses and functions", () => {
    assertEquals([statuses["OK"], statuses["OTHER"]], [0, 127]);
    assertEquals(functions.includes("plue_tool_call"), true);
    assertEquals([fields[0], fields.includes("call_timeout_ms")], [
      "struct_size",
      true,
    ]);
  });
});

describe("plue.hpp", () => {
  it("has each status", () => {
    const own = textOf("include", "plue.hpp").matchAll(
      /^ {4}(\w+) = PLUE_(\w+),?$/gm,
    );
    const names = [...own].map((
      [, name = "", status],
    ) => [name.toUpperCase(), status]);
    assertEquals(names.map(([name]) => name), Object.keys(statuses));
    assertEquals(names.filter(([name, status]) => name !== status), []);
  });
});

describe("the package for Python", () => {
  it("has each option", () => {
    const native = textOf("python", "plue", "_native.py");
    const own = fieldsIn(native, /class Options[^]*?\n {4}\]/, /\("(\w+)",/g);
    assertEquals(own, fields);
  });

  it("has each status", () => {
    const errors = textOf("python", "plue", "_errors.py");
    assertEquals(numbersIn(errors, /^ {4}([A-Z_]+) = (\d+)$/gm), statuses);
    const classes = [...errors.matchAll(/^ {4}code = Code\.(\w+)$/gm)].map((
      [, name],
    ) => name);
    assertEquals(
      ["OK", ...classes, "OTHER"].sort(),
      Object.keys(statuses).sort(),
    );
  });
});

describe("each binding", () => {
  const sources = {
    "plue.hpp": textOf("include", "plue.hpp"),
    Python: ["_calls", "_tools"].map((name) => textOf("python", "plue", `${name}.py`)).join(),
    Rust: ["call", "tool"].map((name) => textOf("rust", "plue", "src", `${name}.rs`)).join(),
  };
  for (const [name, source] of Object.entries(sources)) {
    it(`has calls, questions, tasks, tools and their aborts: ${name}`, () => {
      const wanted = functions.filter((name) =>
        /^plue_(tool_(?!list|execute)|set_question|.*on_abort|.*result_flags)/.test(name)
      );
      assertEquals(wanted.length, 11);
      assertEquals(wanted.filter((name) => !source.includes(name)), []);
    });
  }
});

describe("plue-sys", () => {
  const crate = textOf("rust", "plue-sys", "src", "lib.rs");

  it("has each option", () => {
    const own = fieldsIn(
      crate,
      /struct plue_options_t \{[^]*?\n\}/,
      /pub (\w+):/g,
    );
    assertEquals(own, fields);
  });

  it("has each status", () => {
    const own = numbersIn(crate, /^ {4}PLUE_(?!MODE_|RESULT_)(\w+) = (\d+),$/gm);
    assertEquals(own, statuses);
    assertEquals(numbersIn(crate, /^ {4}PLUE_RESULT_(\w+) = (\d+),$/gm), flags);
  });

  it("has each function", () => {
    const own = [...crate.matchAll(/pub fn (plue_\w+)/g)].map(([, name]) => name).sort();
    assertEquals(own, [...functions]);
  });
});
