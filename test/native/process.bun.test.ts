// How libplue finds the sidecar's program, starts its process and sees it out, in odd hosts.

import { afterAll, beforeAll, describe } from "bun:test";
import { assertEquals } from "@std/assert";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { maybe } from "../support/skip.ts";
import { buildPrograms, PROGRAMS, ROOT, run, RUNTIMES, said } from "./support.ts";

const PROCESS = join(PROGRAMS, "process");
const FAKE_SIDECAR = join(PROGRAMS, "fake_sidecar");
const missing = buildPrograms();
const withCompiler = maybe(missing === undefined, missing ?? "");
const onLinux = maybe(
  missing === undefined && process.platform === "linux",
  missing ?? "it is about Linux, or stands in for a system call of it",
);

const folder = mkdtempSync(join(tmpdir(), "plue-process-"));
afterAll(() => rmSync(folder, { recursive: true }));
if (missing === undefined) {
  mkdirSync(join(folder, "sub"));
  copyFileSync(PROCESS, join(folder, "host"));
  copyFileSync(FAKE_SIDECAR, join(folder, "plue-sidecar"));
}

async function pass(
  command: readonly string[],
  env: { readonly [name: string]: string } = {},
): Promise<void> {
  const outcome = await run(command, { env });
  assertEquals(outcome.code, 0, said(outcome));
}

/** A command for a shell that is in a folder. */
function within(path: string, command: string): readonly string[] {
  return ["bash", "-c", `cd '${path}' && ${command}`];
}

describe("the sidecar's process", () => {
  const tests = {
    no_stdio: "leaves the descriptors 0 to 2 alone, whichever the host has closed",
    hostile_environment: "is handed nothing of the environment that would run something else",
  };
  const ofLinux = {
    closed_descriptors: "ends, and says why, if the host closes the descriptors of the library",
    closed_descriptor: "is seen out, whichever descriptor of the library the host closes",
    never_exec: "is given up if it does not begin in time",
    fork_in_start: "begins although another thread makes a process at that moment",
    unkillable: "is given up if the system does not end it",
    no_child: "is no child that the host would wait for",
    large_host: "costs a host with much memory no copy of it and no page fault",
  };
  for (const [test, does] of Object.entries({ ...tests, ...ofLinux })) {
    const itDoes = test in ofLinux ? onLinux : withCompiler;
    itDoes(does, () => pass([PROCESS, FAKE_SIDECAR, test]));
  }

  withCompiler("begins in / where the host's folder was removed", () => {
    const removed = join(folder, "removed");
    mkdirSync(removed);
    return pass(
      within(
        removed,
        `rmdir ../removed && exec ${PROCESS} ${FAKE_SIDECAR} folder_gone`,
      ),
    );
  });
});

describe("the sidecar beside a host that was linked statically", () => {
  const ways = {
    "was started by a relative path": "exec ./host - default_program",
    "was found in PATH": "PATH=.:$PATH exec host - default_program",
    "was given another name": "exec -a /bin/something ./host - default_program",
    "was given a name without a folder": "exec -a something ./host - default_program",
  };
  for (const [how, command] of Object.entries(ways)) {
    onLinux(
      `is found when the host ${how}, and has gone elsewhere`,
      () => pass(within(folder, command)),
    );
  }
});

describe("plue-sidecar.js", () => {
  const withScript = join(folder, "with-script");
  const hostile = join(folder, "hostile");
  const host = join(withScript, "host");
  const script = join(withScript, "plue-sidecar.js");
  const evil = join(hostile, "evil-was-run");
  beforeAll(async () => {
    if (missing !== undefined) return;
    mkdirSync(withScript);
    mkdirSync(hostile);
    copyFileSync(PROCESS, host);
    const entrypoint = join(ROOT, "ffi", "sidecar", "main.ts");
    const { outputs } = await Bun.build({
      entrypoints: [entrypoint],
      target: "node",
    });
    writeFileSync(script, await outputs[0]?.text() ?? "");
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
    const config = JSON.stringify({
      compilerOptions: {
        jsx: "react-jsx",
        jsxImportSource: hostile,
        paths: { "*": ["./evil.mjs"] },
      },
    });
    for (const name of ["tsconfig.json", "jsconfig.json"]) {
      writeFileSync(join(hostile, name), config);
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
        await pass(within(path, `exec ${host} - hostile_folder`), env);
        assertEquals(existsSync(evil), false);
      }
    },
  );

  withCompiler("takes no variable that makes its runtime run something else", async () => {
    const inspect = {
      BUN_INSPECT_CONNECT_TO: "unix:///tmp/no-such-socket",
      BUN_INSPECT_NOTIFY: "unix:///tmp/no-such-socket",
      BUN_INSPECT_PRELOAD: join(hostile, "evil.mjs"),
      BUN_OPTIONS: `--preload=${join(hostile, "evil.mjs")}`,
      BUN_CONFIG_FILE: join(hostile, "bunfig.toml"),
      NODE_OPTIONS: `--import=${join(hostile, "evil.mjs")}`,
    };
    await pass(within(hostile, `exec ${host} - hostile_folder`), {
      ...env,
      ...inspect,
    });
    assertEquals(existsSync(evil), false);
  });

  const odd = {
    "whose name is not UTF-8": "mkdir $'caf\\xe9' && cd $'caf\\xe9'",
    "that it may not enter again": "mkdir closed && cd closed && chmod 0 .",
  };
  for (const [which, enter] of Object.entries(odd)) {
    withCompiler(
      `runs for a host in a folder ${which}`,
      () => pass(within(folder, `${enter} && exec ${host} - odd_folder`), env),
    );
  }

  withCompiler("may be what PLUE_SIDECAR names", async () => {
    const named = { ...env, PLUE_SIDECAR: "with-script/plue-sidecar.js" };
    await pass(within(folder, `exec ${PROCESS} - hostile_folder`), named);
  });
});

describe("a host", () => {
  const tests = {
    "may fork() before it starts the tools and after it has ended them":
      `${PROCESS} ${FAKE_SIDECAR} fork`,
    "that was linked statically may call tools before main()":
      "env PLUE_TEST_EARLY=1 ./host - early",
    "may hand plue_init_with_options() a struct that ends in the middle of a field":
      `${PROCESS} ${FAKE_SIDECAR} half_a_field`,
  };
  for (const [does, command] of Object.entries(tests)) {
    withCompiler(does, () => pass(within(folder, `exec ${command}`)));
  }
});

describe("a host without a sidecar", () => {
  const tests = {
    "says where one is looked for": `exec ${PROCESS} - no_program`,
    "says of a working directory that it is missing": "exec ./host - no_folder",
    "says what the sidecar has printed that was never ready": `exec ${PROCESS} - last_words`,
    "takes no folder and no empty name for one": "PATH=.:$PATH exec ./host - no_file",
    "says that there are too few descriptors": "exec ./host - few_descriptors",
  };
  for (const [does, command] of Object.entries(tests)) {
    withCompiler(does, () => pass(within(folder, command)));
  }

  const asOther = join(folder, "host-of-another");
  maybe(
    missing === undefined && process.platform === "linux" &&
      process.getuid?.() === 0,
    missing ?? "it takes root, and Linux",
  )("hands on nothing that its caller chose if it has more rights than its caller", () => {
    chmodSync(folder, 0o755);
    mkdirSync(asOther);
    const host = join(asOther, "host");
    copyFileSync(PROCESS, host);
    chownSync(host, 65_534, 65_534);
    chmodSync(host, 0o4755);
    return pass([host, join(folder, "plue-sidecar"), "no_environment"], {
      PLUE_SIDECAR: FAKE_SIDECAR,
      PLUE_TEST_EVIL: "1",
    });
  });
});

describe("a relative path", () => {
  withCompiler(
    "of a program is seen from where the host called plue_init()",
    () => pass(within(folder, "exec ./host - relative_program")),
  );

  withCompiler(
    "in PATH is seen from the host's folder, not from the sidecar's",
    () => pass(within(folder, "PATH=.:$PATH exec ./host - relative_path_variable")),
  );

  withCompiler(
    "of PLUE_SIDECAR is seen from where the host was started",
    () =>
      pass(
        within(
          folder,
          `PLUE_SIDECAR=./plue-sidecar exec ${PROCESS} - default_program`,
        ),
      ),
  );

  const modules = join(ROOT, "test", "native", "modules");
  const onBun = join(folder, "sidecar-on-bun");
  const main = join(ROOT, "ffi", "sidecar", "main.ts");
  writeFileSync(
    onBun,
    `#!/bin/sh\nexec ${RUNTIMES["bun"]?.join(" ")} '${main}'\n`,
  );
  chmodSync(onBun, 0o755);

  withCompiler(
    "of a module is seen from where the host called plue_init()",
    () =>
      pass(within(modules, `exec ${PROCESS} - relative_module`), {
        PLUE_SIDECAR: onBun,
      }),
  );

  withCompiler("of PLUE_TOOLS is seen from where the host was started", () => {
    const env = { PLUE_SIDECAR: onBun, PLUE_TOOLS: "loud.ts" };
    return pass(
      within(modules, `exec ${PROCESS} - relative_module_variable`),
      env,
    );
  });
});

describe("a plugin that libplue is linked into statically", () => {
  const plugin = process.platform === "darwin" ? "libplugin.dylib" : "libplugin.so";

  withCompiler(
    "can be unloaded while its sidecar runs and its threads end",
    () =>
      pass([join(PROGRAMS, "plugin_host"), join(PROGRAMS, plugin)], {
        PLUE_SIDECAR: FAKE_SIDECAR,
      }),
  );

  withCompiler("has the sidecar beside itself, also when it was named by a relative path", () => {
    copyFileSync(join(PROGRAMS, plugin), join(folder, plugin));
    return pass(
      within(folder, `exec ${join(PROGRAMS, "plugin_host")} ./${plugin}`),
    );
  });
});
