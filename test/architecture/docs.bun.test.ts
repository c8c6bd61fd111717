import { assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { RISK_LEVELS, ToolRegistry } from "@plue/tools";
import { explorer } from "@plue/tools/explorer";
import * as formats from "@plue/tools/formats";
import { createToolHandler, serveFormats } from "@plue/tools/hono";
import * as plue from "../../src/select/mod.ts";
import { helpUrl, HTTP_STATUS } from "../../src/tool/mod.ts";
import { maybe } from "../support/skip.ts";
import { filesBelow, jsonOf, textOf } from "./source_tree.ts";

const ENTRIES = Object.values(jsonOf("deno.json")["exports"] as Readonly<Record<string, string>>);

/** The fields of a definition: the keys of the table of their checks. */
const FIELDS = [
  .../^const FIELDS = \{\n(.*?)^\} satisfies/ms.exec(textOf("src/tool/define_tool.ts"))?.[1]
    ?.matchAll(/^ {2}(\w+): /gm) ?? [],
].map(([, name = ""]) => name);
/** The guides: the links of the README's table. */
const GUIDES = [...textOf("README.md").matchAll(/^\| \[[^\]]*\]\((docs\/[\w/-]+\.md)\)/gm)]
  .map(([, file]) => file ?? "");
/** References for people, to which the guides link. */
const REFERENCES = ["docs/formats.md", "docs/specification.md"];

describe("the guides", () => {
  it("are all pages in docs, linked from the README", () => {
    const pages = filesBelow("docs", (path) => /^docs\/(?!decisions).*\.md$/.test(path));
    assertGreater(pages.length, 10);
    assertEquals(GUIDES.toSorted(), pages.filter((page) => !REFERENCES.includes(page)).toSorted());
  });

  it("take ten minutes at most", () => {
    // Readers take a minute for 200 words of prose. Code and tables are not counted.
    const words = (file: string): number =>
      textOf(file).replaceAll(/^```[^]*?^```|^\|.*$/gm, "").split(/\s+/).length;
    assertEquals(GUIDES.filter((file) => words(file) > 2_000), []);
  });

  it("exclude only code from the tests whose packages are not installed", () => {
    const ignored = GUIDES.flatMap((file) =>
      [...textOf(file).matchAll(/^```[jt]s ignore$/gm)].map(() => file)
    );
    // test/edge tests the frameworks of http.md, test/oracles the frameworks of frameworks.md
    // and the listings of migrating.md.
    // test/adapters/durable_objects runs the Worker of cloudflare.md, test/adapters/postgres the
    // program of workers.md. The pages in deploy and recipes say how their listings were run.
    assertEquals(ignored.toSorted(), [
      "docs/cloudflare.md",
      "docs/deploy/cloudflare.md",
      "docs/deploy/deno-deploy.md",
      "docs/deploy/docker.md",
      "docs/finding.md",
      ...Array<string>(7).fill("docs/frameworks.md"),
      "docs/http.md",
      "docs/http.md",
      "docs/mcp.md",
      "docs/mcp.md",
      "docs/mcp.md",
      ...Array<string>(7).fill("docs/migrating.md"),
      "docs/recipes/next-chat.md",
      "docs/recipes/openapi-agent.md",
      "docs/workers.md",
    ]);
  });
});

describe("the unit of systemd", () => {
  const verifies = maybe(Bun.which("systemd-analyze") !== null, "systemd-analyze is not here");
  verifies("is accepted by systemd-analyze verify", () => {
    const [, unit = ""] = /^```ini\n(.*?)^```/ms.exec(textOf("docs/deploy/systemd.md")) ?? [];
    const folder = mkdtempSync(join(tmpdir(), "plue-unit-"));
    const path = join(folder, "plue.service");
    writeFileSync(path, unit.replace("/usr/bin/node", process.execPath));
    const { stderr, exitCode } = Bun.spawnSync(["systemd-analyze", "verify", path]);
    rmSync(folder, { recursive: true });
    // Unknown settings are only warnings. Other units of the machine may have warnings, too.
    const warnings = stderr.toString().split("\n").filter((line) => line.includes("plue.service"));
    assertEquals([exitCode, warnings], [0, []]);
  });
});

describe("the lists in the guides", () => {
  it("has every route", () => {
    const app = createToolHandler(new ToolRegistry(), { explorer, formats: serveFormats(formats) });
    const missing = app.routes.filter(({ path }) => !textOf("docs/http.md").includes(` ${path}\``));
    assertEquals(missing.map(({ path }) => path), []);
  });

  it("has every failure code, risk level and field of a definition", () => {
    const calling = textOf("docs/calling.md");
    const rows = calling.matchAll(/^\| (`[a-z_]+`.*?) +\| ([\d, ]+\d) /gm);
    const statuses = rows.flatMap(([, codes = "", numbers = ""]) =>
      codes.replaceAll("`", "").split(", ").map((
        code,
        at,
      ) => [code, +Number(numbers.split(", ")[at])])
    );
    assertEquals(Object.fromEntries(statuses), HTTP_STATUS);
    const defining = textOf("docs/defining.md");
    assertGreater(FIELDS.length, 30);
    const missing = [...FIELDS, ...RISK_LEVELS].filter((name) => !defining.includes(`\`${name}\``));
    assertEquals(missing, []);
  });

  it("has a section for every code to which the type of a problem leads", () => {
    const [, list = ""] = /^export type ProblemCode =\n([^;]*);/m
      .exec(textOf("src/adapters/http/responses.ts")) ?? [];
    const codes = [...list.matchAll(/"(\w+)"/g)].map(([, code = ""]) => code);
    assertGreater(codes.length, 10);
    const { url } = jsonOf("package.json")["repository"] as { url: string };
    const sections = [...textOf("docs/troubleshooting.md").matchAll(/^### (\w+)$/gm)]
      .map(([, code = ""]) => code);
    assertEquals(sections.toSorted(), [...Object.keys(HTTP_STATUS), ...codes].toSorted());
    assertEquals(
      helpUrl("threw"),
      `${url.replace(/^git\+|\.git$/g, "")}/blob/main/docs/troubleshooting.md#threw`,
    );
  });

  it("has the number of targets", () => {
    for (const file of ["README.md", "docs/providers.md"]) {
      assertStringIncludes(textOf(file), `${formats.listTargets().length} targets`);
    }
  });
});

describe("the links of the documentation", () => {
  const pages = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md"].concat(
    ["docs", "examples", "ffi", "bench"].flatMap((folder) =>
      filesBelow(folder, (path) => path.endsWith(".md"))
    ),
  );
  /** Returns the fragment of a heading in a link. */
  const slug = (heading: string): string =>
    heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

  it("point to existing files and headings", () => {
    const dead = pages.flatMap((page) => {
      const text = textOf(page).replaceAll(/^```.*?^```/gms, "");
      return [...text.matchAll(/\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)"/g)]
        .map(([, link, source]) => link ?? source ?? "")
        .filter((link) => !/^[a-z]+:/.test(link))
        .filter((link) => {
          const [path = "", heading] = link.split("#");
          const file = path === "" ? page : join(dirname(page), path);
          if (!existsSync(file)) return true;
          return heading !== undefined &&
            !textOf(file).split("\n")
              .some((line) => /^#+ /.test(line) && slug(line.replace(/^#+ /, "")) === heading);
        })
        .map((link) => `${page}: ${link}`);
    });
    assertEquals(dead, []);
  });
});

describe("the documentation", () => {
  maybe(Bun.which("deno") !== null, "Deno is not here")("says what every exported name is", () => {
    const args = ["doc", "--lint", "--node-modules-dir=manual", ...ENTRIES];
    const { stderr } = Bun.spawnSync(["deno", ...args], { env: { ...process.env, NO_COLOR: "1" } });
    const problems = stderr.toString();
    // Members of interfaces need no docs, so the linter always reports problems.
    assertStringIncludes(problems, "documentation lint errors");
    const missing = [
      ...problems.matchAll(/error\[missing-jsdoc\].*\n *--> (.*)\n[ |]*\n *\d+ \| export /g),
    ].map(([, place]) => place);
    assertEquals(missing, []);
  });

  it("names in docs/specification.md only existing tests and exports", () => {
    const text = textOf("docs/specification.md");
    const files = new Set(
      ["test", "examples", "ffi"]
        .flatMap((folder) => filesBelow(folder, (path) => /\.(test\.ts|c|h)$/.test(path)))
        .map((file) => file.split("/").at(-1)),
    );
    const tests = [...text.matchAll(/`(?:[\w/]+\/)?(\w[\w.]*\.(?:test\.ts|c|h))`/g)]
      .map(([, name]) => name ?? "");
    assertGreater(tests.length, 30);
    assertEquals([...new Set(tests)].filter((name) => !files.has(name)), []);

    const words = ["mod.ts", "ffi/include/plue.h"]
      .flatMap((file) => textOf(file).match(/\b\w+\b/g) ?? []);
    const declaration = /^export (?:function|class|interface|type|const) (\w+)/gm;
    const declared = filesBelow("src", (path) => path.endsWith(".ts"))
      .flatMap((file) => [...textOf(file).matchAll(declaration)].map(([, name]) => name));
    const exported = new Set([...words, ...declared]);
    const symbols = [...text.matchAll(/`([A-Z][a-z]\w+|plue_\w+|by[A-Z]\w+)[`.(]/g)]
      .map(([, name]) => name ?? "");
    assertGreater(symbols.length, 30);
    assertEquals([...new Set(symbols)].filter((name) => !exported.has(name)), []);
  });
});

/** The rows of the guide's table of criteria, without their padding. */
function rowsOfGuide(): readonly string[] {
  const [, table = ""] = textOf("docs/selecting.md").split(/\n(?=\| query )/);
  const [rows = ""] = table.split("\n\n");
  return rows.split("\n").slice(2).map((row) => row.replaceAll(/ +/g, " "));
}

describe("the guide of selections", () => {
  it("names each criterion on each surface as the tables do", () => {
    const name = (text: string | undefined) => text === undefined ? "" : `\`${text}\` `;
    const rows = Object.entries(plue.VOCABULARY).map(([query, { flag, text }]) => {
      const criterion = plue.CRITERION_NAMES.find((one) => one === query);
      const selection = criterion && !plue.isContextFlag(criterion) ? criterion : undefined;
      const context = criterion ? plue.CRITERIA[criterion].context : query;
      return `| ${name(query)}| ${name(selection)}| ${name(context)}| ${name(flag)}| ${text} |`;
    });
    assertEquals(rowsOfGuide(), rows);
  });

  it("has the rows in the order in which tools are checked", () => {
    assertEquals(Object.keys(plue.VOCABULARY), [...plue.CRITERION_NAMES, ...plue.READER_FIELDS]);
  });
});
