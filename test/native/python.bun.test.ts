// The package for Python: its own tests, its wheel, and the programs of its README.

import { beforeAll, describe } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as native from "./support.ts";

const PACKAGE = join(native.ROOT, "ffi", "python");
const missing = native.buildPrograms() ?? native.lackOf("python3");
const test = native.unless(missing);
const folder = native.temporaryFolder("python");

const env = {
  PLUE_LIBRARY: native.SHARED_LIBRARY,
  PLUE_SUITE: native.SUITE_LIBRARY,
  PLUE_SIDECAR: native.sidecarOn("bun", folder),
  PLUE_TOOLS: native.TOOLS,
  PYTHONDONTWRITEBYTECODE: "1",
  PYTHONPATH: PACKAGE,
};

function python(
  args: readonly string[],
  more: { readonly [name: string]: string } = {},
): Promise<string> {
  return native.succeed(["python3", ...args], { env: { ...env, ...more } });
}

describe("the package for Python", () => {
  test("passes its own tests", async () => {
    const output = await python(["-W", "error", join(PACKAGE, "test", "test_plue.py")]);
    console.log(output.trim());
  });

  test("has the version of libplue", () => {
    const { version } = JSON.parse(readFileSync(join(native.ROOT, "package.json"), "utf8"));
    const project = readFileSync(join(PACKAGE, "pyproject.toml"), "utf8");
    assertStringIncludes(project, `\nversion = "${version}"\n`);
  });
});

describe("a host in Python that runs programs", () => {
  test("answers the approvals of a program, while it waits and by a ticket", async () => {
    const script = `
import plue
plue.init(config={"bridge": True})
print(list(plue.tools()))
code = "return await Promise.all((await tools.list()).map((id) => tools.pay({ id })));"
try:
    plue.call("run_code", {"code": code})
except plue.InputRequiredError as error:
    answers = {question["key"]: {"action": "accept"} for question in error.questions}
    print(plue.resume(error.ticket, answers))
plue.on_question(lambda question, invocation: {"action": "accept"})
print(plue.call("run_code", {"code": code}))
`;
    const output = await python(["-c", script], {
      PLUE_SIDECAR: native.sidecarOn("bun", folder, "code_sidecar"),
      PLUE_TOOLS: "",
    });
    const result = "{'value': ['paid a', 'paid b']}";
    assertEquals(output, `['run_code', 'search_tools']\n${result}\n${result}\n`);
  });
});

describe("ffi/python/README.md", () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const programs = [...readme.matchAll(/```python\n([^]*?)```/g)].map(([, text = ""]) => text);
  const printed: readonly RegExp[] = [
    /^\[.*'echo'.*\]\n\{'message': 'hello'\}\n.*no such tool UNKNOWN_TOOL\n$/,
    /^1000\n$/,
    /^\{'sum': 5\}\n$/,
    /^$/,
    /^accept\naccept\n\{.ok.: True, .content.: \{.a.: 1\}.*\}\n$/,
  ];

  const [, commands = ""] = /```sh\n([^]*?)```/.exec(readme) ?? [];
  const [byPip = "", byWheel = "", ...others] = commands.trim().split("\n");
  /** A folder in which the commands find the package and the library. */
  const clone = join(folder, "clone");

  beforeAll(() => {
    if (missing !== undefined) return;
    cpSync(PACKAGE, join(clone, "ffi", "python"), { recursive: true });
    symlinkSync(native.BUILD, join(clone, "ffi", "build"));
  });

  async function inClone(line: string, more: { readonly [name: string]: string }): Promise<void> {
    await native.shell(line, { cwd: clone, env: { ...env, PYTHONPATH: "", ...more } });
  }

  test("has two commands", () =>
    assertEquals([byPip !== "", byWheel !== "", others], [true, true, []]));

  test("has a command that installs the package, without a network", async () => {
    const { code } = await native.run(["python3", "-c", "import pip"]);
    if (code !== 0) return;
    const target = join(folder, "by-pip");
    await inClone(byPip, {
      ...{ PIP_TARGET: target, PIP_NO_INDEX: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1" },
      PLUE_LIBRARY: "",
    });
    const output = await python(["-c", "import plue; print(plue.call('echo'))"], {
      PYTHONPATH: target,
    });
    assertEquals(output, "{}\n");
  });

  test("has a command that makes a wheel with libplue in it", async () => {
    await inClone(byWheel, {});
    const [wheel = ""] = readdirSync(join(clone, "dist"));
    const installed = join(folder, "installed");
    // Installing this wheel means only unpacking it.
    await python(["-m", "zipfile", "-e", join(clone, "dist", wheel), installed]);
    const script = `import plue; print(plue.__file__, plue.call("echo", {"from": "a wheel"}))`;
    const output = await python(["-c", script], { PYTHONPATH: installed, PLUE_LIBRARY: "" });
    assertEquals(output, `${installed}/plue/__init__.py {'from': 'a wheel'}\n`);
  });

  programs.forEach((text, i) =>
    test(`contains working programs, program ${i + 1}`, async () => {
      const file = join(folder, `readme_${i}.py`);
      writeFileSync(file, text.replace('tools="tools.ts", ', ""));
      assertEquals((await python([file])).replace(printed[i] ?? /$^/, ""), "");
    })
  );

  test("has five programs", () => assertEquals(programs.length, printed.length));
});
