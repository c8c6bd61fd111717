// How libplue finds the sidecar's program, starts its process and sees it out, in odd hosts.

import { beforeAll, describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import {
  buildPrograms,
  PROGRAMS,
  ROOT,
  sidecarOn,
  succeed,
  temporaryFolder,
  unless,
  WITH_FAKE,
} from "./support.ts";

const PROCESS = join(PROGRAMS, "process");
const FAKE_SIDECAR = WITH_FAKE.PLUE_SIDECAR;
const missing = buildPrograms();
const withCompiler = unless(missing);
const notLinux = process.platform === "linux"
  ? undefined
  : "it is about Linux, or stands in for a system call of it";
const onLinux = unless(missing ?? notLinux);

const folder = temporaryFolder("process");
if (missing === undefined) {
  mkdirSync(join(folder, "sub"));
  copyFileSync(PROCESS, join(folder, "host"));
  copyFileSync(FAKE_SIDECAR, join(folder, "plue-sidecar"));
}

/** Passes a line of a shell. */
async function pass(
  line: string,
  cwd: string = folder,
  env: { readonly [name: string]: string } = {},
): Promise<void> {
  await succeed(["bash", "-ec", line], { cwd, env });
}

/** Tests that are lines of a shell, by what each shows. */
function passEach(
  test: ReturnType<typeof unless>,
  lines: { readonly [title: string]: string },
  cwd?: string,
  env?: { readonly [name: string]: string },
): void {
  for (const [title, line] of Object.entries(lines)) test(title, () => pass(line, cwd, env));
}

/** A test of ffi/test/process.c with the sidecar in C. */
const withFake = (name: string): string => `exec ${PROCESS} ${FAKE_SIDECAR} ${name}`;

describe("the sidecar's process", () => {
  passEach(withCompiler, {
    "leaves the descriptors 0 to 2 alone, whichever the host has closed": withFake("no_stdio"),
    "is handed nothing of the environment that would run something else": withFake(
      "hostile_environment",
    ),
    "begins in / where the host's folder was removed":
      `mkdir removed && cd removed && rmdir ../removed && ${withFake("folder_gone")}`,
  });
  passEach(onLinux, {
    "ends, and says why, if the host closes the descriptors of the library": withFake(
      "closed_descriptors",
    ),
    "is seen out, whichever descriptor of the library the host closes": withFake(
      "closed_descriptor",
    ),
    "is given up if it does not begin in time": withFake("never_exec"),
    "begins although another thread makes a process at that moment": withFake("fork_in_start"),
    "is given up if the system does not end it": withFake("unkillable"),
    "is seen out although a tool has stopped its guardian": withFake("stopped_guardian"),
    "has ended although a child sends on": withFake("endless_child"),
    "is no child that the host would wait for": withFake("no_child"),
    "costs a host with much memory no copy of it and no page fault": withFake("large_host"),
  });
});

describe("the sidecar beside a host that was linked statically is found, from elsewhere,", () => {
  passEach(onLinux, {
    "when the host was started by a relative path": "exec ./host - default_program",
    "when the host was found in PATH": "PATH=.:$PATH exec host - default_program",
    "when the host was given another name": "exec -a /bin/something ./host - default_program",
    "when the host was given a name without a folder": "exec -a something ./host - default_program",
  });
});

describe("plue-sidecar.js", () => {
  const withScript = join(folder, "with-script");
  const hostile = join(folder, "hostile");
  const host = join(withScript, "host");
  const evil = join(hostile, "evil-was-run");
  beforeAll(async () => {
    if (missing !== undefined) return;
    mkdirSync(withScript);
    mkdirSync(hostile);
    copyFileSync(PROCESS, host);
    const entrypoints = [join(ROOT, "ffi", "sidecar", "main.ts")];
    const { outputs } = await Bun.build({ entrypoints, target: "node" });
    writeFileSync(join(withScript, "plue-sidecar.js"), await outputs[0]?.text() ?? "");
    writeFileSync(
      join(withScript, "tools.mjs"),
      `import { defineTool, ToolRegistry } from ${JSON.stringify(join(ROOT, "mod.ts"))};
export default new ToolRegistry({
  tools: [defineTool({
    name: "variable",
    description: "Returns a variable of the environment.",
    parameters: { type: "object", additionalProperties: true },
    execute: ({ name }) =>
      name === "the folder"
        ? process.cwd()
        : name === "a package"
        ? import("is-odd").then(() => "it was downloaded", () => "it is not installed")
        : name === "a worker"
        ? new Promise((answer, fail) => {
          const worker = new Worker(new URL("./worker.tsx", import.meta.url));
          worker.onmessage = ({ data }) => answer(data);
          worker.onerror = ({ message }) => fail(new Error(message));
        })
        : process.env[name] ?? "",
  })],
});
`,
    );
    // Bun has both from the module's tsconfig.json: what "jsx" is, and where "@mapped" is.
    writeFileSync(
      join(withScript, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: { jsx: "react", jsxFactory: "make", paths: { "@mapped": ["./m.ts"] } },
      }),
    );
    writeFileSync(join(withScript, "m.ts"), 'export default "by the paths of the module";\n');
    writeFileSync(
      join(withScript, "worker.tsx"),
      'import mapped from "@mapped";\nconst make = () => mapped;\npostMessage(<p />);\n',
    );
    writeFileSync(join(hostile, "bunfig.toml"), 'preload = ["./evil.mjs"]\n');
    writeFileSync(join(hostile, ".env"), "PLUE_TEST_EVIL=1\n");
    const paths = { "*": ["./evil.mjs"] };
    const config = { compilerOptions: { jsx: "react-jsx", jsxImportSource: hostile, paths } };
    for (const name of ["tsconfig.json", "jsconfig.json"]) {
      writeFileSync(join(hostile, name), JSON.stringify(config));
    }
    mkdirSync(join(hostile, "below"));
    writeFileSync(
      join(hostile, "evil.mjs"),
      `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(evil)}, "");\n`,
    );
  });
  const env = { PLUE_TOOLS: join(withScript, "tools.mjs") };

  withCompiler(
    "runs nothing that lies in the host's folder, and takes no variable of it",
    async () => {
      for (const path of [hostile, join(hostile, "below")]) {
        await pass(`exec ${host} - hostile_folder`, path, env);
        assertEquals(existsSync(evil), false);
      }
    },
  );

  withCompiler("takes no variable that makes its runtime run something else", async () => {
    await pass(`exec ${host} - hostile_folder`, hostile, {
      ...env,
      BUN_INSPECT_CONNECT_TO: "unix:///tmp/no-such-socket",
      BUN_INSPECT_NOTIFY: "unix:///tmp/no-such-socket",
      BUN_INSPECT_PRELOAD: join(hostile, "evil.mjs"),
      BUN_OPTIONS: `--preload=${join(hostile, "evil.mjs")}`,
      BUN_CONFIG_FILE: join(hostile, "bunfig.toml"),
      NODE_OPTIONS: `--import=${join(hostile, "evil.mjs")}`,
    });
    assertEquals(existsSync(evil), false);
  });

  passEach(
    withCompiler,
    {
      "runs for a host in a folder whose name is not UTF-8":
        `mkdir $'caf\\xe9' && cd $'caf\\xe9' && exec ${host} - odd_folder`,
      "runs for a host in a folder that it may not enter again":
        `mkdir closed && cd closed && chmod 0 . && exec ${host} - odd_folder`,
      "may be what PLUE_SIDECAR names":
        `PLUE_SIDECAR=with-script/plue-sidecar.js exec ${PROCESS} - hostile_folder`,
    },
    folder,
    env,
  );
});

describe("a host", () => {
  passEach(withCompiler, {
    "may fork() before it starts the tools and after it has ended them": withFake("fork"),
    "that was linked statically may call tools before main()":
      "PLUE_TEST_EARLY=1 exec ./host - early",
    "may hand plue_init_with_options() a struct that ends in the middle of a field": withFake(
      "half_a_field",
    ),
  });
});

describe("a host without a sidecar", () => {
  passEach(withCompiler, {
    "says where one is looked for": `exec ${PROCESS} - no_program`,
    "says of a working directory that it is missing": "exec ./host - no_folder",
    "says what the sidecar has printed that was never ready": `exec ${PROCESS} - last_words`,
    "takes no folder and no empty name for one": "PATH=.:$PATH exec ./host - no_file",
    "says that there are too few descriptors": "exec ./host - few_descriptors",
  });

  const notRoot = process.getuid?.() === 0 ? undefined : "it takes root";
  unless(missing ?? notLinux ?? notRoot)(
    "hands on nothing that its caller chose if it has more rights than its caller",
    () => {
      const asOther = join(folder, "host-of-another");
      const host = join(asOther, "host");
      chmodSync(folder, 0o755);
      mkdirSync(asOther);
      copyFileSync(PROCESS, host);
      chownSync(host, 65_534, 65_534);
      chmodSync(host, 0o4755);
      const env = { ...WITH_FAKE, PLUE_TEST_EVIL: "1" };
      return pass(`exec ${host} ${join(folder, "plue-sidecar")} no_environment`, folder, env);
    },
  );
});

describe("a relative path", () => {
  passEach(withCompiler, {
    "of a program is seen from where the host called plue_init()": "exec ./host - relative_program",
    "in PATH is seen from the host's folder, not from the sidecar's":
      "PATH=.:$PATH exec ./host - relative_path_variable",
    "of PLUE_SIDECAR is seen from where the host was started":
      `PLUE_SIDECAR=./plue-sidecar exec ${PROCESS} - default_program`,
  });
  passEach(
    withCompiler,
    {
      "of a module is seen from where the host called plue_init()":
        `exec ${PROCESS} - relative_module`,
      "of PLUE_TOOLS is seen from where the host was started":
        `PLUE_TOOLS=loud.ts exec ${PROCESS} - relative_module_variable`,
    },
    join(ROOT, "test", "native", "modules"),
    { PLUE_SIDECAR: sidecarOn("bun", folder) },
  );
});

describe("a plugin that libplue is linked into statically", () => {
  const plugin = process.platform === "darwin" ? "libplugin.dylib" : "libplugin.so";
  const host = join(PROGRAMS, "plugin_host");
  passEach(withCompiler, {
    "can be unloaded while its sidecar runs and its threads end":
      `PLUE_SIDECAR=${FAKE_SIDECAR} exec ${host} ${join(PROGRAMS, plugin)}`,
    "has the sidecar beside itself, also when it was named by a relative path": `cp ${
      join(PROGRAMS, plugin)
    } . && exec ${host} ./${plugin}`,
  });
});
