import { assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FAILURE_CODES, RISK_LEVELS, type ToolDefinition, ToolRegistry } from "@plue/tools";
import { explorer } from "@plue/tools/explorer";
import * as formats from "@plue/tools/formats";
import { createToolHandler, serveFormats } from "@plue/tools/hono";
import { maybe } from "../support/skip.ts";
import { jsonOf } from "./source_tree.ts";

const ENTRIES = Object.values(jsonOf("deno.json")["exports"] as Readonly<Record<string, string>>);

/** Every field of a definition; the types know when one is missing. */
const FIELDS_OF_DEFINITIONS: { readonly [Field in keyof ToolDefinition]-?: true } = {
  name: true,
  namespace: true,
  aliases: true,
  title: true,
  description: true,
  version: true,
  parameters: true,
  returns: true,
  category: true,
  risk: true,
  tags: true,
  roles: true,
  allowedRoles: true,
  scopes: true,
  requiresTransaction: true,
  requiresApproval: true,
  isAvailable: true,
  unavailableReason: true,
  annotations: true,
  examples: true,
  icons: true,
  deprecated: true,
  timeoutMs: true,
  outputOverflow: true,
  idempotent: true,
  execution: true,
  config: true,
  context: true,
  meta: true,
  init: true,
  dispose: true,
  validate: true,
  execute: true,
};
/** The guides: the links of the README's table. */
const GUIDES = [
  ...readFileSync("README.md", "utf8").matchAll(/^\| \[[^\]]*\]\((docs\/[\w-]+\.md)\)/gm),
]
  .map(([, file]) => file ?? "");
/** Written for people, and linked from the guides. */
const REFERENCES = ["docs/formats.md", "docs/specification.md"];

describe("the guides", () => {
  it("are all pages in docs, linked from the README", () => {
    const pages = [...new Bun.Glob("docs/*.md").scanSync(".")];
    assertGreater(pages.length, 10);
    assertEquals(GUIDES.toSorted(), pages.filter((page) => !REFERENCES.includes(page)).toSorted());
  });

  it("take ten minutes at most", () => {
    // 200 words of prose a minute. Code and tables are looked at, not read word by word.
    const words = (file: string): number =>
      readFileSync(file, "utf8").replaceAll(/^```.*?^```|^\|.*$/gms, "").split(/\s+/).length;
    assertEquals(GUIDES.filter((file) => words(file) > 2_000), []);
  });

  it("leave no code out of the tests but what needs packages that are not here", () => {
    const ignored = GUIDES.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/^```[jt]s ignore$/gm)].map(() => file)
    );
    // test/edge tests the frameworks of http.md, test/oracles the frameworks of frameworks.md.
    assertEquals(ignored.toSorted(), [
      "docs/finding.md",
      ...Array<string>(5).fill("docs/frameworks.md"),
      "docs/http.md",
      "docs/http.md",
      "docs/mcp.md",
      "docs/mcp.md",
      "docs/mcp.md",
    ]);
  });
});

describe("what the guides list", () => {
  const textOf = (file: string): string => readFileSync(file, "utf8");

  it("has every route", () => {
    const app = createToolHandler(new ToolRegistry(), {
      explorer,
      formats: serveFormats(formats),
    });
    const missing = app.routes.filter(({ path }) => !textOf("docs/http.md").includes(` ${path}\``));
    assertEquals(missing.map(({ path }) => path), []);
  });

  it("has every failure code, risk level and field of a definition", () => {
    const calling = textOf("docs/calling.md");
    assertEquals(Object.keys(FAILURE_CODES).filter((code) => !calling.includes(`\`${code}\``)), []);
    const defining = textOf("docs/defining.md");
    const fields = Object.keys(FIELDS_OF_DEFINITIONS);
    const missing = [...fields, ...RISK_LEVELS].filter((name) => !defining.includes(`\`${name}\``));
    assertEquals(missing, []);
  });

  it("has the number of targets", () => {
    for (const file of ["README.md", "docs/providers.md"]) {
      assertStringIncludes(textOf(file), `${formats.listTargets().length} targets`);
    }
  });
});

describe("the links of the documentation", () => {
  const pages = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
  ]
    .concat([
      ...new Bun.Glob("{docs,examples,ffi,bench}/**/*.md").scanSync("."),
    ])
    .filter((page) => !page.includes("node_modules"));
  /** Returns the fragment of a heading in a link. */
  const slug = (heading: string): string =>
    heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

  it("point to existing files and headings", () => {
    const dead = pages.flatMap((page) => {
      const text = readFileSync(page, "utf8").replaceAll(/^```.*?^```/gms, "");
      return [...text.matchAll(/\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)"/g)]
        .map(([, link, source]) => link ?? source ?? "")
        .filter((link) => !/^[a-z]+:/.test(link))
        .filter((link) => {
          const [path = "", heading] = link.split("#");
          const file = path === "" ? page : join(dirname(page), path);
          if (!existsSync(file)) return true;
          return heading !== undefined &&
            !readFileSync(file, "utf8").split("\n")
              .some((line) => /^#+ /.test(line) && slug(line.replace(/^#+ /, "")) === heading);
        })
        .map((link) => `${page}: ${link}`);
    });
    assertEquals(dead, []);
  });
});

describe("the documentation", () => {
  maybe(Bun.which("deno") !== null, "Deno is not here")(
    "says what every exported name is",
    () => {
      const args = ["doc", "--lint", "--node-modules-dir=manual", ...ENTRIES];
      const { stderr } = Bun.spawnSync(["deno", ...args], {
        env: { ...process.env, NO_COLOR: "1" },
      });
      const problems = stderr.toString();
      // Members of interfaces may speak for themselves, so the linter always has something to say.
      assertStringIncludes(problems, "documentation lint errors");
      const missing = [
        ...problems.matchAll(/error\[missing-jsdoc\].*\n *--> (.*)\n[ |]*\n *\d+ \| export /g),
      ].map(([, place]) => place);
      assertEquals(missing, []);
    },
  );

  it("names in docs/specification.md only existing tests and exports", async () => {
    const text = await Bun.file("docs/specification.md").text();
    const files = new Set(
      [...new Bun.Glob("{test,examples,ffi}/**/*.{test.ts,c,h}").scanSync(".")]
        .map((file) => file.split("/").at(-1)),
    );
    const tests = [
      ...text.matchAll(/`(?:[\w/]+\/)?(\w[\w.]*\.(?:test\.ts|c|h))`/g),
    ]
      .map(([, name]) => name ?? "");
    assertGreater(tests.length, 30);
    assertEquals([...new Set(tests)].filter((name) => !files.has(name)), []);

    const words = ["mod.ts", "ffi/include/plue.h"]
      .flatMap((file) => readFileSync(file, "utf8").match(/\b\w+\b/g) ?? []);
    const declared = [...new Bun.Glob("src/**/*.ts").scanSync(".")].flatMap((file) =>
      [
        ...readFileSync(file, "utf8").matchAll(
          /^export (?:function|class|interface|type|const) (\w+)/gm,
        ),
      ]
        .map(([, name]) => name)
    );
    const exported = new Set([...words, ...declared]);
    const symbols = [
      ...text.matchAll(/`([A-Z][a-z]\w+|plue_\w+|by[A-Z]\w+)[`.(]/g),
    ]
      .map(([, name]) => name ?? "");
    assertGreater(symbols.length, 30);
    assertEquals([...new Set(symbols)].filter((name) => !exported.has(name)), []);
  });
});
