// The example hosts, built and run as ffi/README.md says, from an installed libplue.

import { beforeAll, describe, it } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findZig } from "../../scripts/setup.mjs";
import {
  buildPrograms,
  lackOf,
  lackOfSanitizer,
  LONG_LIMIT_MS,
  make,
  type Outcome,
  ROOT,
  run,
  said,
  temporaryFolder,
  unless,
  WITH_FAKE,
} from "./support.ts";

const missing = buildPrograms();
const folder = temporaryFolder("hosts");
const prefix = join(folder, "prefix");

beforeAll(() => {
  if (missing === undefined) make("-s", "install", `PREFIX=${prefix}`);
});

/** Runs a line of the README, as somebody who has installed libplue. */
function shell(
  cwd: string,
  lines: string,
  env: { readonly [name: string]: string } = {},
): Promise<Outcome> {
  const installed = { PREFIX: prefix, PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig") };
  const options = { cwd, limitMs: LONG_LIMIT_MS, env: { ...installed, ...WITH_FAKE, ...env } };
  return run(["sh", "-ec", lines], options);
}

/** The table in ffi/README.md: a language, its example, and the build command. */
const readme = readFileSync(join(ROOT, "ffi", "README.md"), "utf8");
const ROW = /^\| ([^|]+?) +\| \[`(examples\/[^`]+)`\][^|]*\| `([^`]+)` +\|$/gm;
const hosts = [...readme.matchAll(ROW)]
  .map(([, language = "", file = "", command = ""]) => ({ language, file, command }));

describe("ffi/README.md", () => {
  it("has a host in each language without a binding", () => {
    const languages = hosts.map(({ language }) => language);
    assertEquals(languages, ["C", "Zig 0.16", "Swift"]);
    assertEquals(hosts.filter(({ file }) => !existsSync(join(ROOT, "ffi", file))), []);
  });
});

describe("the section about valgrind and sanitizers in ffi/README.md", () => {
  const [, block = ""] = /^## Valgrind and sanitizers\n[^]*?```sh\n([^]*?)```/m.exec(readme) ?? [];
  const [withValgrind = "", withSanitizer = ""] = block.split("\n");
  const build = hosts.find(({ language }) => language === "C")?.command ?? "";
  const cases = [
    { tool: "valgrind", lack: lackOf("valgrind"), lines: [build, withValgrind] },
    {
      tool: "-fsanitize=thread",
      lack: lackOfSanitizer("thread"),
      lines: [withSanitizer, "./host echo '{}'"],
    },
  ];
  for (const { tool, lack, lines } of cases) {
    unless(lack)(`has a command for ${tool} that works`, async () => {
      const own = mkdtempSync(join(folder, "observed-"));
      cpSync(join(ROOT, "ffi", "examples"), own, { recursive: true });
      const outcome = await shell(own, lines.join("\n"));
      assertEquals([outcome.code, outcome.stderr], [0, ""], said(outcome));
      assertStringIncludes(outcome.stdout, "result: {}", said(outcome));
    });
  }
});

const foundZig = missing === undefined ? await findZig() : {};

describe("the example host", () => {
  for (const { language, file, command } of hosts) {
    const [program = ""] = command.split(" ");
    const isZig = program === "zig";
    const lack = isZig ? missing ?? foundZig.missing : lackOf(program);

    unless(lack)(`in ${language} is built and works`, async () => {
      const own = join(folder, language);
      cpSync(join(ROOT, "ffi", dirname(file)), own, { recursive: true });
      const runLine = (line: string): Promise<Outcome> =>
        shell(own, line, isZig ? foundZig.env : {});
      const built = await runLine(command);
      assertEquals([built.code, built.stderr], [0, ""], said(built));

      const good = await runLine(`./host progress '{"n":2}'`);
      assertEquals(good.code, 0, said(good));
      assertMatch(good.stdout, /result: \{"n":2/, said(good));
      assertStringIncludes(good.stdout, "echo", said(good));
      const events = `${good.stdout}${good.stderr}`.match(/"i":[01]/g);
      assertEquals(events?.length, 2, said(good));

      const bad = await runLine("./host nope");
      assertEquals(bad.code, 1, said(bad));
      assertMatch(bad.stdout, /failure: .*There is no tool nope/, said(bad));
    });
  }
});
