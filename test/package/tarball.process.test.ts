// The packed package, in programs on other runtimes and in TypeScript.

import { assert, assertEquals, assertGreater, assertLessOrEqual, assertMatch } from "@std/assert";
import { describe } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { publint } from "publint";
import manifest from "../../package.json" with { type: "json" };
import * as packed from "./app.ts";
import { app, createApp, home, run, SPECIFIERS, stagedAt } from "./app.ts";

const test = packed.testWith();

/** Older Nodes and the oldest TypeScript: packages of these tests. */
const OWN = join(import.meta.dirname, "node_modules");

interface Runtime {
  readonly name: string;
  readonly command: string;
  readonly args?: readonly string[];
}

const NODE20: Runtime = { name: "Node 20.19", command: join(OWN, "node20/bin/node") };
const NODE22: Runtime = { name: "Node 22", command: join(OWN, "node22/bin/node") };
const NODE24: Runtime = { name: "Node 24", command: Bun.which("node") ?? "" };
const NODES = [NODE20, NODE22, NODE24];
const OTHERS: readonly Runtime[] = [
  { name: "Bun", command: "bun" },
  { name: "Deno", command: "deno", args: ["run", "--allow-all", "--node-modules-dir=manual"] },
];
const OLD_TSC = join(OWN, "typescript-5.5/bin/tsc");
// npm does not mark the files of these packages as executable here.
for (const file of [NODE20.command, NODE22.command, OLD_TSC].filter(existsSync)) {
  chmodSync(file, 0o755);
}

/** A test on one of the runtimes; `start` runs a program in the app there. */
function testOn(
  { name, command, args = [] }: Runtime,
  title: string,
  body: (start: (...words: string[]) => string) => void | Promise<void>,
): void {
  packed.testWith(command, name)(
    `${title} ${name}`,
    () => body((...words) => run(command, [...args, ...words])),
  );
}

/**
 * Lists the exports, for a function with its name and its first entry. This function runs here and,
 * as text, in the app.
 */
function listExports(entries: { readonly [specifier: string]: object }): readonly string[] {
  const known = new Map<unknown, string>();
  return Object.entries(entries).flatMap(([specifier, entry]) =>
    Object.entries(entry).map(([name, value]) => {
      const place = `${specifier} ${name}`;
      if (typeof value !== "function") return place;
      if (!known.has(value)) known.set(value, place);
      return `${place}: ${value.name}, ${known.get(value)}`;
    })
  );
}

const PRINT_EXPORTS = `
  const entries = {};
  for (const specifier of ${JSON.stringify(SPECIFIERS)}) {
    entries[specifier] = await import(specifier);
  }
  ${listExports}
  console.log(JSON.stringify(listExports(entries)));
`;

/** Writes the code of the README, and a module that runs it and prints the version of the runtime. */
function writeReadme(): void {
  const typescript = new Bun.Transpiler({ loader: "ts" });
  const readme = readFileSync(join(home, "README.md"), "utf8");
  const codes = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ""], at) => {
    // Node 20 and 22 do not run TypeScript.
    writeFileSync(join(app, `readme${at}.mjs`), typescript.transformSync(code));
    return `await import("./readme${at}.mjs");`;
  });
  assertGreater(codes.length, 2);
  const version = "const { node, bun, deno } = process.versions; console.log(deno ?? bun ?? node);";
  writeFileSync(join(app, "readme.mjs"), [...codes, version].join("\n"));
}

/** Calls the functions of the listings, on AWS Lambda with the events of a function URL. */
const CALLS = `
  const { handler } = await import("./aws-lambda.ts");
  const { default: { fetch } } = await import("./vercel.ts");
  const host = "abc123.lambda-url.eu-central-1.on.aws";
  const authorization = \`Bearer \${process.env.TOKEN}\`;
  const execute = ["/tools/count_words/execute", { arguments: { text: "one two three" } }];
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const mcp = ["/mcp", list, { accept: "application/json, text/event-stream" }];
  const open = [execute[0], execute[1], { authorization: "" }];
  const read = (status, text) => {
    const body = text.startsWith("event:") ? text.slice(text.indexOf("{")) : text;
    const { content, result } = JSON.parse(body);
    return [status, content ?? result?.tools[0].name];
  };
  const invoke = async ([path, value, headers], isBase64Encoded = false) => {
    const text = JSON.stringify(value);
    const answer = await handler({
      ...{ version: "2.0", routeKey: "$default", rawPath: path, rawQueryString: "" },
      headers: { "content-type": "application/json", host, authorization, ...headers },
      requestContext: {
        ...{ accountId: "anonymous", apiId: "abc123", domainName: host, domainPrefix: "abc123" },
        ...{ requestId: "r-1", routeKey: "$default", stage: "$default", timeEpoch: 1764439200000 },
        http: { method: "POST", path, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "a" },
      },
      ...{ body: isBase64Encoded ? btoa(text) : text, isBase64Encoded },
    });
    const { statusCode, body } = answer;
    return read(statusCode, answer.isBase64Encoded ? atob(body) : body);
  };
  const send = async ([path, value, headers]) => {
    const response = await fetch(new Request("https://words.example.vercel.app" + path, {
      ...{ method: "POST", body: JSON.stringify(value) },
      headers: { "content-type": "application/json", authorization, ...headers },
    }));
    return read(response.status, await response.text());
  };
  const lambda = [await invoke(execute), await invoke(execute, true), await invoke(open), await invoke(mcp)];
  const vercel = [await send(execute), await send(open), await send(mcp)];
  console.log(JSON.stringify({ lambda, vercel }));
`;

describe("the npm package", () => {
  for (const runtime of [NODE24, ...OTHERS]) {
    testOn(
      runtime,
      "has each export of the sources, once and under its name, on",
      async (start) => {
        const entries: { [specifier: string]: object } = {};
        for (const specifier of SPECIFIERS) entries[specifier] = await import(specifier) as object;
        writeFileSync(join(app, "exports.mjs"), PRINT_EXPORTS);
        const expected = listExports(entries);
        assertGreater(expected.length, 100);
        assertEquals(JSON.parse(start("exports.mjs")).toSorted(), expected.toSorted());
      },
    );
  }

  for (const node of NODES) {
    testOn(node, "runs the code of the README, by npm test, on", () => {
      writeReadme();
      const env = { ...process.env, PATH: `${dirname(node.command)}:${process.env["PATH"]}` };
      const [version = ""] = /[\d.]+/.exec(node.name) ?? [];
      assertMatch(run("npm", ["test", "--silent"], app, env), new RegExp(`^${version}\\.`));
    });

    testOn(node, "is loaded by require on", (start) => {
      const script = `console.log(typeof require("${manifest.name}").defineTool)`;
      assertEquals(start("--input-type=commonjs", "--no-warnings", "-e", script), "function\n");
    });
  }

  for (const runtime of OTHERS) {
    testOn(runtime, "runs the code of the README on", (start) => {
      writeReadme();
      assertMatch(start("readme.mjs"), /^\d+\./);
    });
  }

  for (const runtime of [NODE20, NODE24, ...OTHERS]) {
    testOn(runtime, "has the command plue, which shares the library with a module, on", (start) => {
      const name = `command-${runtime.name}`;
      const program = packed.createCommand(name);
      const alone = join(app, "..", name);
      const tool = '{ name: "ping", description: "Answers.", execute: () => "pong" }';
      const file = join(alone, "tools.mjs");
      writeFileSync(
        file,
        `import { ask, rules } from "@plue/tools/rules";
        export const tool = ${tool};
        export const dispatch = { rules: rules([{ name: "r", decide: () => ask("Why?") }]) };`,
      );
      assertEquals(start(program, "call", "-f", file, "--yes", "ping"), "pong\n");
      const explained = start(program, "explain", "-f", file, "ping", "--arguments", "{}");
      assertMatch(explained, /"ping": ask/);
      // Here, plue itself is the MCP server of a plue.json.
      const { command, args = [] } = runtime;
      const own = { command, args: [...args, program, "serve", file, "--stdio"] };
      const gateway = join(alone, "plue.json");
      writeFileSync(gateway, JSON.stringify({ sources: { own } }));
      assertMatch(start(program, "check", gateway), /1 source/);
      assertEquals(start(program, "serve", "-c", gateway, "--stdio"), "");
    });
  }

  testOn(NODE20, "says in plue check that a journal needs a later version than", () => {
    const program = packed.createCommand("journal");
    const file = join(app, "..", "journal", "plue.json");
    writeFileSync(file, '{"sources": {}, "journal": {"file": "calls.jsonl"}}');
    const { status, stderr } = spawnSync(NODE20.command, [program, "check", file], {
      encoding: "utf8",
    });
    const why = "it needs node:sqlite; Node has it from version 22.13 on";
    assertEquals([status, stderr], [2, `Cannot use ${file}:1:17: ${why}\n`]);
  });

  for (const name of packed.PACKED) {
    test(`satisfies publint as ${name}`, async () => {
      const { messages } = await publint({ pkgDir: stagedAt(name), strict: true, pack: false });
      assertEquals(messages, []);
    });
  }

  test("is small, and contains neither sources nor tests nor the command", () => {
    const files = readdirSync(home, { recursive: true, encoding: "utf8" });
    assertLessOrEqual(files.length, 200);
    assertLessOrEqual(statSync(packed.tarballOf("tools")).size, 600_000);
    const foreign =
      /^(src|docs|examples|ffi|mod\.ts)|\.map$|\.test\.|(^|\/)(test|cli)\/|node_modules/;
    assertEquals(files.filter((file) => foreign.test(file)), []);
    const wanted = ["README.md", "CHANGELOG.md", "LICENSE", "dist/mod.js", "dist/mod.d.ts"];
    assertEquals(wanted.filter((file) => !files.includes(file)), []);
    assertMatch(readFileSync(join(home, "dist/LICENSES.txt"), "utf8"), /^typebox .*\(MIT\)$/m);
  });

  test("can be bundled without the package of the MCP client", () => {
    // Bundlers leave an import of a missing package in place only if `catch` handles its failure.
    const required = /import\([`"']@modelcontextprotocol\/client[^)]*\)(?!\.catch\()/;
    const files = readdirSync(join(home, "dist"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".js"));
    assertGreater(files.length, 10);
    const wrong = files.filter((file) =>
      required.test(readFileSync(join(home, "dist", file), "utf8"))
    );
    assertEquals(wrong, []);
  });

  test("has a text with the guides for programs, and @plue/cli has one with all guides", () => {
    const [own, all] = [home, stagedAt("cli")].map((folder) =>
      readFileSync(join(folder, "dist/llms.txt"), "utf8")
    );
    assert(own !== undefined && all !== undefined);
    assertMatch(own, /^# plue .*\n\n> One tool registry for AI agents/);
    assertMatch(own, /^# Your first tool$/m);
    const guides = readdirSync(join(packed.ROOT, "docs"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md") && !name.startsWith("decisions"));
    assertEquals(guides.filter((name) => !own.includes(`/docs/${name})`)), []);
    assertEquals(guides.filter((name) => !all.includes(`\n<!-- docs/${name} -->\n\n# `)), []);
  });

  test("has a README with the name of the text, and with links that work without a clone", () => {
    for (const name of packed.PACKED) {
      const readme = readFileSync(join(stagedAt(name), "README.md"), "utf8");
      assertMatch(readme, /`dist\/llms\.txt`/);
      const text = readme.replaceAll(/^```.*?^```/gms, "");
      const links = [...text.matchAll(/(?:\]\(|src=")([^)"\s]+)/g)].map(([, link = ""]) => link);
      const missing = links.filter((link) =>
        !/^(https:|#)/.test(link) && !existsSync(join(stagedAt(name), link.replace(/#.*/, "")))
      );
      assertEquals([name, ...missing], [name]);
    }
  });

  test("shows an error of a program without pages of bundled code", () => {
    const program = `import { defineTool } from "${manifest.name}"; defineTool({ name: 1 });`;
    const { stderr } = spawnSync("node", ["--input-type=module", "-e", program], {
      cwd: app,
      encoding: "utf8",
    });
    assertMatch(stderr, /^TypeError: Cannot /m);
    assertLessOrEqual(stderr.length, 2000);
  });

  test("has the same version in all packages, and its exports in @plue/nats", () => {
    for (const name of packed.PACKED) {
      const { version, dependencies } = JSON.parse(
        readFileSync(join(stagedAt(name), "package.json"), "utf8"),
      );
      const own = name === "tools" ? undefined : manifest.version;
      assertEquals([version, dependencies?.[manifest.name]], [manifest.version, own]);
    }
    const folder = createApp("nats", Object.keys(manifest.peerDependencies), ["tools", "nats"]);
    writeFileSync(
      join(folder, "same.mjs"),
      `import * as own from "@plue/nats";
       import * as entry from "@plue/tools/nats";
       console.log(Object.keys(own).length, Object.keys(own).every((key) => own[key] === entry[key]));`,
    );
    assertMatch(run("node", ["same.mjs"], folder), /^[1-9]\d* true$/m);
  });

  test("names jose at the first request of jwtAuth() without it, for any token", () => {
    const folder = createApp("without-jose", ["hono"]);
    writeFileSync(
      join(folder, "jwt.mjs"),
      `import { jwtAuth } from "@plue/tools/hono";
       const authorize = jwtAuth({ secret: "s".repeat(32), issuer: "a", audience: "b" });
       for (const headers of [{}, { authorization: "Bearer malformed" }]) {
         const request = new Request("http://localhost/", { headers });
         await authorize(request).catch((error) => console.log(error.message));
       }`,
    );
    assertEquals(
      run("node", ["jwt.mjs"], folder),
      'Cannot check JSON Web Tokens: run "npm install jose" first\n'.repeat(2),
    );
  });

  test("names jose in a failure that is not retryable if sealedTickets() lacks it", () => {
    const folder = createApp("tickets-without-jose", []);
    writeFileSync(
      join(folder, "tickets.mjs"),
      `import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
       import { sealedTickets } from "@plue/tools/calls";
       const pay = { name: "pay", description: "Pays.", requiresApproval: true, execute: () => 1 };
       const tickets = sealedTickets({ keys: [new Uint8Array(32)] });
       const registry = new ToolRegistry({ tools: [defineTool(pay)] });
       const dispatcher = new ToolDispatcher(registry, { approve: "ask", tickets });
       const { error } = await dispatcher.dispatch({ name: "pay" });
       console.log(error.code, error.retryable, error.message);`,
    );
    assertEquals(
      run("node", ["tickets.mjs"], folder),
      'input_unavailable false Cannot call "pay": run "npm install jose" first\n',
    );
  });

  test("runs the programs of the pages about AWS Lambda and Vercel", () => {
    const folder = createApp("deployed", ["hono", "typebox", "@modelcontextprotocol/server"]);
    for (const page of ["aws-lambda", "vercel"]) {
      const text = readFileSync(join(packed.ROOT, `docs/deploy/${page}.md`), "utf8");
      const [, code = ""] = /^```ts\n(.*?)^```/ms.exec(text) ?? [];
      writeFileSync(join(folder, `${page}.ts`), code);
    }
    writeFileSync(join(folder, "calls.mjs"), CALLS);
    const env = { ...process.env, TOKEN: "token-of-the-deployed-listings" };
    assertEquals(JSON.parse(run("node", ["calls.mjs"], folder, env)), {
      lambda: [[200, 3], [200, 3], [401, null], [200, "count_words"]],
      vercel: [[200, 3], [401, null], [200, "count_words"]],
    });
  });

  test("has the licences of the packages in the command", () => {
    const text = readFileSync(join(stagedAt("cli"), "dist/LICENSES.txt"), "utf8");
    for (const name of ["commander", "yaml", "@clack/prompts", "@nats-io/transport-node"]) {
      const entry = `\\n${name} \\d[\\d.]* \\(.+\\)\\n\\n.*(?:licen|copyright)`;
      assertMatch(text, new RegExp(entry, "is"));
    }
  });
});

const TYPES = `
  import { defineTool, type InferParams, type Tool } from "${manifest.name}";
  import Type from "typebox";
  ${SPECIFIERS.map((specifier, at) => `import * as entry${at} from "${specifier}";`).join("\n")}
  export const entries: readonly object[] = [${SPECIFIERS.map((_, at) => `entry${at}`)}];
  export const tool: Tool = defineTool({ name: "noop", description: "Does nothing." });
  // @ts-expect-error -- a description is not optional
  defineTool({ name: "noop" });
  const text: InferParams<{ readonly type: "string" }> = "inferred without TypeBox";
  // @ts-expect-error -- the schema says string
  const number: InferParams<{ readonly type: "string" }> = 1;
  defineTool({
    name: "greet",
    description: "Greets.",
    parameters: Type.Object({ name: Type.String() }),
    execute: ({ name }) => {
      const known: string = name;
      // @ts-expect-error -- the schema says string
      const wrong: number = name;
      return [known, wrong, text, number];
    },
  });
`;

/** The packages whose types an entry needs. The SDK's own types name Node's. */
const TYPED_PEERS: { readonly [specifier: string]: readonly string[] } = {
  "@plue/tools/ajv": ["ajv"],
  "@plue/tools/hono": ["hono"],
  "@plue/tools/mcp": [
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/server",
    "@types/node",
  ],
  "@plue/tools/nats": ["@nats-io/nats-core", "@types/node"],
};

/** The entries whose types the oldest TypeScript supports. Types of peers need newer versions. */
const OLDEST = ["", "/core", "/layers", "/formats", "/finding", "/frameworks", "/calls"]
  .map((path) => manifest.name + path);

/** Returns what a TypeScript compiler reports of a module, which imports whole entries. */
function typeCheck(
  folder: string,
  module: string | readonly string[],
  options: readonly string[],
  tsc = join(packed.ROOT, "node_modules/typescript/bin/tsc"),
): string {
  const text = typeof module === "string"
    ? module
    : module.map((entry, at) => `export * as entry${at} from "${entry}";`).join("\n");
  writeFileSync(join(folder, "entries.ts"), text);
  // Several checkers would each infer most of the types again. The oldest compiler has only one.
  const more = tsc === OLD_TSC ? options : [...options, "--checkers", "1"];
  const args = [tsc, "--noEmit", "--strict", "--skipDefaultLibCheck", ...more, "entries.ts"];
  const { status, stdout, stderr } = spawnSync("node", args, { cwd: folder, encoding: "utf8" });
  return stdout + stderr + (status === 0 ? "" : `It ended with ${status}`);
}

/** The packages that a file of types imports, with the files that it loads. */
function namedBy(file: string, loaded: Set<string> = new Set()): Set<string> {
  loaded.add(file);
  const named = new Set<string>();
  // Comments are removed, because their examples import other entries.
  const code = readFileSync(file, "utf8").replaceAll(/\/\*.*?\*\//gs, "");
  const imports = code.matchAll(/(?:from|import\() ?"([^"]+)"/g);
  for (const [, path = ""] of imports) {
    const next = join(dirname(file), path.replace(/\.js$/, ".d.ts"));
    if (!path.startsWith(".")) named.add(path);
    else if (!loaded.has(next)) namedBy(next, loaded).forEach((name) => named.add(name));
  }
  return named;
}

describe("the types of the npm package", () => {
  const modules = { nodenext: "nodenext", bundler: "preserve" };
  for (const [resolution, module] of Object.entries(modules)) {
    test(`are found by TypeScript with moduleResolution "${resolution}"`, () => {
      const options = [
        ...["--exactOptionalPropertyTypes", "--skipLibCheck", "--target", "es2023"],
        ...["--lib", "esnext,dom", "--types", "", "--module", module],
        ...["--moduleResolution", resolution],
      ];
      assertEquals(typeCheck(app, TYPES, options), "");
    });
  }

  for (const needsPeers of [false, true]) {
    test(`are valid, ${needsPeers ? "with the peers" : "without a peer"}`, () => {
      const specifiers = SPECIFIERS.filter((name) => (name in TYPED_PEERS) === needsPeers);
      const peers = needsPeers ? [...new Set(Object.values(TYPED_PEERS).flat())] : [];
      const folder = createApp(`typed-${needsPeers}`, peers);
      const types = needsPeers ? "node" : "";
      const options = ["--target", "es2023", "--module", "nodenext", "--types", types];
      assertEquals(typeCheck(folder, specifiers, options), "");
    });
  }

  test("name the peers of their own entry only", () => {
    for (const [specifier, peers] of Object.entries(TYPED_PEERS)) {
      const named = namedBy(join(home, "dist", `${specifier.split("/").at(-1)}.d.ts`));
      const foreign = [...named].filter((name) => !peers.some((peer) => name.startsWith(peer)));
      assertEquals([specifier, ...foreign], [specifier]);
    }
  });

  packed.testWith(OLD_TSC, "TypeScript 5.5")("are accepted by the oldest TypeScript", () => {
    const folder = createApp("typed-oldest", ["@types/node"]);
    const options = ["--target", "es2022", "--lib", "esnext,dom", "--types", "node"];
    options.push("--module", "nodenext");
    const printed = typeCheck(folder, OLDEST, options, OLD_TSC);
    // Other packages may require a newer TypeScript.
    const own = printed.split("\n")
      .filter((line) => line.startsWith("entries.ts") || line.includes("plue/tools/"));
    assertEquals(own, []);
  });
});
