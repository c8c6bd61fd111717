import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { stripTypes } from "../../../src/adapters/code/mod.ts";
import { maybe } from "../../support/skip.ts";

const own = globalThis.process?.getBuiltinModule?.("node:module")?.stripTypeScriptTypes;
const withOwn = maybe(own !== undefined, "this runtime does not remove types");
const withoutOwn = maybe(own === undefined, "this runtime removes types");

describe("stripTypes()", () => {
  withOwn("removes types, and keeps every other character in its place", () => {
    const program = [
      "interface Issue { readonly title: string }",
      "const issues = (await tools.github.issues({ page: 1 })) as Issue[];",
      "const first: Issue | undefined = issues[0]; // the newest",
      "return first!.title satisfies string; // }",
    ].join("\n");
    const stripped = stripTypes(program);
    assertEquals(stripped.split("\n").map((line) => line.replace(/\s+/g, " ").trim()), [
      "",
      "const issues = (await tools.github.issues({ page: 1 })) ;",
      "const first = issues[0]; // the newest",
      "return first .title ; // }",
    ]);
    assertEquals(stripped.indexOf("issues[0]"), program.indexOf("issues[0]"));
  });

  withOwn("rejects a program that is not valid, or has code that is not only a type", () => {
    for (const program of ["const a: = 1;", "enum A { b }", "}"]) {
      const { message } = assertThrows(() => stripTypes(program), SyntaxError);
      assertEquals(message.startsWith("Cannot remove the types of the program: "), true, message);
    }
  });

  withoutOwn("asks for a function where the runtime has none", () => {
    const { message } = assertThrows(() => stripTypes("return 1;"), TypeError);
    assertEquals(
      message,
      "Cannot remove the types of the program: this runtime has no function for it; write " +
        'JavaScript, or pass a function of a package, such as "sucrase"',
    );
  });

  it("uses the passed function", () => {
    assertEquals(stripTypes("a: b\n// c", (source) => source.replace(": b", "")), "a\n// c");
  });
});
