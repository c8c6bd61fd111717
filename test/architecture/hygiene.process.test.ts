import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { describe, it } from "bun:test";
import { exists, filesBelow, textOf, withoutComments } from "./source_tree.ts";
import { unclearSentences } from "./words.ts";

const TEXT = /\.(ts|mts|mjs|js|json|jsonc|toml|md|capnp|c|h|yml)$/;
const WRITTEN = filesBelow(".", (path) => TEXT.test(path) || path === ".ci/run");
const PRODUCT = WRITTEN.filter((path) =>
  /^(mod\.ts|src\/|examples\/|[A-Z]+\.md)/.test(path) && !path.endsWith(".test.ts")
);

/** Assembled from parts, so that this file does not contain the forbidden paths. */
const path = (...steps: readonly string[]): string => `/${steps.join("/")}/`;

function naming(files: readonly string[], what: string | RegExp): readonly string[] {
  return files.filter((file) => {
    const text = textOf(file);
    return typeof what === "string" ? text.includes(what) : what.test(text);
  });
}

describe("the files of the project", () => {
  it("are found", () => assertGreater(WRITTEN.length, 50));

  for (const folder of [path("work", "main"), path("work", "shared"), path("root")]) {
    it(`do not name ${folder} of somebody's machine`, () => {
      assertEquals(naming(WRITTEN, folder), []);
    });
  }

  it("do not name the host of a package registry", () => {
    assertEquals(naming(WRITTEN, new RegExp("registry\\.(npmjs|yarnpkg|npmmirror)\\.")), []);
  });

  it("do not mention, in product and documentation, data outside the repository", () => {
    assertEquals(naming(PRODUCT, ["..", "shared"].join("/")), []);
  });
});

describe("the sources", () => {
  const sources = filesBelow("src", (file) => /\.tsx?$/.test(file));

  it("each begin with a description", () => {
    assertEquals(sources.filter((file) => !/^\/\*\*[ \n]/.test(textOf(file))), []);
  });

  it("have no `any` and no non-null assertion with a suppressed lint warning", () => {
    assertEquals(naming(sources, /deno-lint-ignore|@ts-ignore|@ts-expect-error/), []);
  });

  it("print nothing, apart from adapters and the page", () => {
    const silent = sources.filter((file) => !/\/(adapters|explorer)\//.test(file));
    const isLoud = (file: string) => /\bconsole\./.test(withoutComments(textOf(file)));
    assertEquals(silent.filter(isLoud), []);
  });
});

describe("the test files", () => {
  const tests = filesBelow(".", (file) => /\.(test|spec)\.[a-z]+$/.test(file));

  it("have a name from which their runtimes follow", () => {
    const wrong = tests.filter((file) =>
      !/^test\/(.*\/)?[a-z0-9_]+(\.process|\.node|\.bun)?\.test\.ts$/.test(file)
    );
    assertEquals(wrong, []);
  });

  it("do not exclude other tests", () => {
    assertEquals(naming(tests, /\b(test|it|describe)\.only\(/), []);
  });
});

describe("CHANGELOG.md", () => {
  it("begins each change with Add, Change or Fix", () => {
    const lines = exists("CHANGELOG.md") ? textOf("CHANGELOG.md").split("\n") : [];
    const wrong = lines.filter((line) => line.startsWith("- "))
      .filter((line) => !/^- (Add|Change|Fix)\b/.test(line));
    assertEquals(wrong, []);
  });
});

describe("comments, messages, titles and guides", () => {
  // `bun test/architecture/words.ts` prints the sentences. The limit falls, and never rises.
  it("contain at most 178 phrases that a reader has to decode", () => {
    assertLessOrEqual(unclearSentences().length, 178);
  });
});

describe("the keys of stores", () => {
  const KEY = /`([a-z]+)\.\$\{(?:await )?(?:durable\.)?owner(?:Digest|Of)?[(}]/g;
  const found = filesBelow("src", (path) => path.endsWith(".ts"))
    .flatMap((file) => [...textOf(file).matchAll(KEY)].map(([, kind = ""]) => kind));
  const tested = textOf("test/adapters/http/tenants.node.test.ts");

  /** The kinds that have the same owner digest as a tested kind. */
  const SAME_OWNER = ["approvals", "run", "used"];

  it("are all in the test of two tenants with a user of the same name", () => {
    const kinds = new Set(found);
    assertGreater(kinds.size, 5);
    assertEquals(
      [...kinds].filter((kind) => !SAME_OWNER.includes(kind) && !tested.includes(`  ${kind}: `)),
      [],
    );
  });
});
