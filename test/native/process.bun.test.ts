// The search for the sidecar's program, and its start and end, in unusual hosts.

import { beforeAll, describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import * as native from "./support.ts";

const PROCESS = join(native.PROGRAMS, "process");
const FAKE_SIDECAR = native.WITH_FAKE.PLUE_SIDECAR;
const missing = native.buildPrograms();
const withCompiler = native.unless(missing);
const notLinux = process.platform === "linux"
  ? undefined
  : "it is about Linux, or stands in for a system call of it";
const onLinux = native.unless(missing ?? notLinux);

const folder = native.temporaryFolder("process");
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
  await native.succeed(["bash", "-ec", line], { cwd, env });
}

/** Tests that are shell commands, by their titles. */
function passEach(
  test: ReturnType<typeof native.unless>,
  lines: { readonly [title: string]: string },
  cwd?: string,
  env?: { readonly [name: string]: string },
): void {
  for (const [title, line] of Object.entries(lines)) test(title, () => pass(line, cwd, env));
}

/** Arguments of a host (`act()` of ffi/test/process.c) that calls a tool in C, and its result. */
const ECHO = "call=echo 'result={}'";
/** Arguments of a host whose tools must not be affected by the hostile folder. */
const NO_EVIL = `'call=variable {"name":"PLUE_TEST_EVIL"}' 'result=""'`;
const UNHARMED = `init ${NO_EVIL} ` +
  `'call=variable {"name":"a package"}' 'result="it is not installed"' ` +
  `'call=variable {"name":"a worker"}' 'result="by the paths of the module"' ` +
  `'call=variable {"name":"the folder"}' "result=\\"$PWD\\""`;

/** The error message of a host without a sidecar. */
const LACK =
  "it is neither beside libplue (where that is linked statically: beside the program), " +
  'nor where "make install" puts it, nor in PATH; put it or plue-sidecar.js there, or name it in ' +
  'PLUE_SIDECAR; "bun build --compile my-sidecar.ts --outfile plue-sidecar" makes one';

/** A test of ffi/test/process.c with the sidecar in C. */
const withFake = (name: string): string => `exec ${PROCESS} ${FAKE_SIDECAR} ${name}`;

describe("the sidecar's process", () => {
  passEach(withCompiler, {
    "leaves the descriptors 0 to 2 alone, whichever the host has closed": withFake("no_stdio"),
    "is handed nothing of the environment that would run something else": withFake(
      "hostile_environment",
    ),
    "begins in / where the host's folder was removed":
      `mkdir removed && cd removed && rmdir ../removed && exec ${PROCESS} host argv=${FAKE_SIDECAR} init call=folder 'result="/"'`,
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

describe("the sidecar next to a statically linked host is found, from elsewhere,", () => {
  passEach(onLinux, {
    "when the host was started by a relative path": `exec ./host host go=/ init ${ECHO}`,
    "when the host was found in PATH": `PATH=.:$PATH exec host host go=/ init ${ECHO}`,
    "when the host was given another name": `exec -a /bin/something ./host host go=/ init ${ECHO}`,
    "when the host was given a name without a folder":
      `exec -a something ./host host go=/ init ${ECHO}`,
  });
});

describe("plue-sidecar.js", () => {
  const withScript = join(folder, "with-script");
  const hostile = join(folder, "hostile");
  const host = join(withScript, "host");
  const evil = join(hostile, "evil-was-run");
  beforeAll(() => {
    if (missing !== undefined) return;
    mkdirSync(withScript);
    mkdirSync(hostile);
    copyFileSync(PROCESS, host);
    copyFileSync(join(native.BUNDLES, "main.mjs"), join(withScript, "plue-sidecar.js"));
    writeFileSync(
      join(withScript, "tools.mjs"),
      `import { defineTool, ToolRegistry } from ${JSON.stringify(join(native.ROOT, "mod.ts"))};
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
    // Bun reads the meaning of "jsx" and the path of "@mapped" from the module's tsconfig.json.
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
    "runs no file in the host's folder, and uses no variable from it",
    async () => {
      for (const path of [hostile, join(hostile, "below")]) {
        await pass(`exec ${host} host ${UNHARMED}`, path, env);
        assertEquals(existsSync(evil), false);
      }
    },
  );

  withCompiler("uses no variable that makes its runtime run another program", async () => {
    await pass(`exec ${host} host ${UNHARMED}`, hostile, {
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
        `mkdir $'caf\\xe9' && cd $'caf\\xe9' && exec ${host} host init ${NO_EVIL}`,
      "runs for a host in a folder that it may not enter again":
        `mkdir closed && cd closed && chmod 0 . && exec ${host} host init ${NO_EVIL}`,
      "may be what PLUE_SIDECAR names":
        `PLUE_SIDECAR=with-script/plue-sidecar.js exec ${PROCESS} host ${UNHARMED}`,
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
    "says where one is looked for": `exec ${PROCESS} host init call=echo 'failure=${LACK}'`,
    "says of a working directory that it is missing": `./host host argv=./plue-sidecar \\
      cwd=/no/such/folder init call=echo \\
      'failure=tools in "/no/such/folder" (sidecar_cwd): No such file or directory'
    exec ./host host argv=./no-sidecar cwd=sub init call=echo \\
      'failure=/no-sidecar": No such file or directory'`,
    "says what the sidecar has printed that was never ready": `exec ${PROCESS} host argv=/bin/sh \\
      argv=-c "argv=printf 'a NUL: \\\\0 the reason' >&2; exit 3" init call=echo \\
      'failure=The tool process ended (exit status 3): a NUL:   the reason'`,
    "takes no folder and no empty name for one": `PATH=.:$PATH exec ./host host argv=sub init \\
      call=echo 'failure="sub": there is no such program in PATH'`,
    "says that there are too few descriptors": "exec ./host - few_descriptors",
  });

  const notRoot = process.getuid?.() === 0 ? undefined : "it takes root";
  native.unless(missing ?? notLinux ?? notRoot)(
    "hands on nothing that its caller chose if it has more rights than its caller",
    () => {
      const asOther = join(folder, "host-of-another");
      const host = join(asOther, "host");
      chmodSync(folder, 0o755);
      mkdirSync(asOther);
      copyFileSync(PROCESS, host);
      chownSync(host, 65_534, 65_534);
      chmodSync(host, 0o4755);
      const env = { ...native.WITH_FAKE, PLUE_TEST_EVIL: "1" };
      return pass(`exec ${host} ${join(folder, "plue-sidecar")} no_environment`, folder, env);
    },
  );
});

describe("a relative path", () => {
  passEach(withCompiler, {
    "of a program is seen from where the host called plue_init()":
      `exec ./host host argv=./plue-sidecar cwd=sub init go=/ ${ECHO}`,
    "in PATH is seen from the host's folder, not from the sidecar's":
      `PATH=.:$PATH exec ./host host argv=plue-sidecar cwd=sub init ${ECHO}`,
    "of PLUE_SIDECAR is seen from where the host was started":
      `PLUE_SIDECAR=./plue-sidecar exec ${PROCESS} host go=/ init ${ECHO}`,
  });
  passEach(
    withCompiler,
    {
      "of a module is seen from where the host called plue_init()":
        `exec ${PROCESS} host tools=loud.ts cwd=/ init go=/ call=shout 'result="quiet"'`,
      "of PLUE_TOOLS is seen from where the host was started":
        `PLUE_TOOLS=loud.ts exec ${PROCESS} host cwd=/ go=/ init call=shout 'result="quiet"'`,
    },
    join(native.ROOT, "test", "native", "modules"),
    { PLUE_SIDECAR: native.sidecarOn("bun", folder) },
  );
});

describe("a plugin that libplue is linked into statically", () => {
  const plugin = process.platform === "darwin" ? "libplugin.dylib" : "libplugin.so";
  const host = join(native.PROGRAMS, "plugin_host");
  passEach(withCompiler, {
    "can be unloaded while its sidecar runs and its threads end":
      `PLUE_SIDECAR=${FAKE_SIDECAR} exec ${host} ${join(native.PROGRAMS, plugin)}`,
    "has the sidecar beside itself, also when it was named by a relative path": `cp ${
      join(native.PROGRAMS, plugin)
    } . && exec ${host} ./${plugin}`,
  });
});
