// The example hosts, built and run as ffi/README.md says, from an installed libplue.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findZig } from "../../scripts/setup.mjs";
import { maybe } from "../support/skip.ts";
import {
  buildPrograms,
  hasProgram,
  hasSanitizer,
  LONG_LIMIT_MS,
  make,
  type Outcome,
  PROGRAMS,
  ROOT,
  run,
  said,
} from "./support.ts";

const missing = buildPrograms();
const folder = mkdtempSync(join(tmpdir(), "plue-hosts-"));
const prefix = join(folder, "prefix");

beforeAll(() => {
  if (missing === undefined) make("-s", "install", `PREFIX=${prefix}`);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The table in ffi/README.md: a language, its example, and the build command. */
const readme = readFileSync(join(ROOT, "ffi", "README.md"), "utf8");
const hosts = [
  ...readme.matchAll(
    /^\| ([^|]+?) +\| \[`(examples\/[^`]+)`\][^|]*\| `([^`]+)` +\|$/gm,
  ),
]
  .map(([, language = "", file = "", command = ""]) => ({
    language,
    file,
    command,
  }));

describe("ffi/README.md", () => {
  maybe(true, "")("has an example host in six languages", () => {
    const languages = hosts.map(({ language }) => language);
    assertEquals(languages, ["C", "C++", "Python", "Rust", "Zig 0.16", "Swift"]);
    assertEquals(hosts.filter(({ file }) => !existsSync(join(ROOT, "ffi", file))), []);
  });
});

describe("the section about valgrind and sanitizers in ffi/README.md", () => {
  const [, block = ""] = /^## Valgrind and sanitizers\n[^]*?```sh\n([^]*?)```/m.exec(readme) ?? [];
  const [withValgrind = "", withSanitizer = ""] = block.split("\n");
  const build = hosts.find(({ language }) => language === "C")?.command ?? "";
  const cases = [
    {
      tool: "valgrind",
      isThere: hasProgram("valgrind"),
      lines: [build, withValgrind],
    },
    {
      tool: "-fsanitize=thread",
      isThere: hasSanitizer("thread"),
      lines: [withSanitizer, "./host echo '{}'"],
    },
  ];
  for (const { tool, isThere, lines } of cases) {
    const lack = missing ?? (isThere ? undefined : `there is no ${tool}`);
    maybe(lack === undefined, lack ?? "")(`has a command for ${tool} that works`, async () => {
      const own = mkdtempSync(join(folder, "observed-"));
      cpSync(join(ROOT, "ffi", "examples"), own, { recursive: true });
      const outcome = await run(["sh", "-ec", [`cd '${own}'`, ...lines].join("\n")], {
        limitMs: LONG_LIMIT_MS,
        env: {
          PREFIX: prefix,
          PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig"),
          PLUE_SIDECAR: join(PROGRAMS, "fake_sidecar"),
        },
      });
      assertEquals([outcome.code, outcome.stderr], [0, ""], said(outcome));
      assertStringIncludes(outcome.stdout, "result: {}", said(outcome));
    });
  }
});

const foundZig = missing === undefined ? await findZig() : {};

describe("the example host", () => {
  for (const { language, file, command } of hosts) {
    const program = command.split(" ").find((word) => !word.includes("=")) ?? "";
    const zig = language.startsWith("Zig") ? foundZig : {};
    const lack = missing ?? zig.missing ??
      (language.startsWith("Zig") || hasProgram(program) ? undefined : `there is no ${program}`);

    maybe(lack === undefined, lack ?? "")(`in ${language} is built and works`, async () => {
      const own = join(folder, language);
      cpSync(join(ROOT, "ffi", dirname(file)), own, { recursive: true });
      const isCargo = program === "cargo";
      const cwd = isCargo ? join(ROOT, "ffi", "rust") : own;
      const shell = (line: string): Promise<Outcome> =>
        run(["sh", "-ec", `cd '${cwd}' && ${line}`], {
          limitMs: LONG_LIMIT_MS,
          env: {
            ...zig.env,
            PREFIX: prefix,
            CARGO_TARGET_DIR: join(own, "target"),
            PYTHONPATH: join(ROOT, "ffi", "python"),
            PKG_CONFIG_PATH: join(prefix, "lib", "pkgconfig"),
            PLUE_SIDECAR: join(PROGRAMS, "fake_sidecar"),
          },
        });
      const isScript = language === "Python" || isCargo;
      if (!isScript) {
        const built = await shell(command);
        assertEquals([built.code, built.stderr], [0, ""], said(built));
      }
      const host = isScript ? command : "./host";

      const good = await shell(`${host} progress '{"n":2}'`);
      assertEquals(good.code, 0, said(good));
      assertMatch(good.stdout, /result: \{"n": ?2/, said(good));
      assertStringIncludes(good.stdout, "echo", said(good));
      const events = `${good.stdout}${good.stderr}`.match(/["']i["']: ?[01]/g);
      assertEquals(events?.length, 2, said(good));

      const bad = await shell(`${host} nope`);
      assertEquals(bad.code, 1, said(bad));
      assertMatch(bad.stdout, /failure: .*There is no tool nope/, said(bad));
    });
  }
});
