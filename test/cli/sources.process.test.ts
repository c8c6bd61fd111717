import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { attemptOr } from "../../src/tool/mod.ts";
import { RUN, startProgram } from "../support/program.ts";
import data from "./commands.json" with { type: "json" };
import { elsewhere, folder, idsIn, listing, plue, serving } from "./support.ts";

const TOOLS = join(import.meta.dirname, "tools.mjs");

/** The package, for modules that are written into another folder. */
const MOD = JSON.stringify(new URL("../../mod.ts", import.meta.url).href);

const PETS = `
openapi: 3.1.0
info: { title: Pets, version: "1" }
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Reads one pet.
      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
      responses: { "200": { description: The pet. } }
`;
/** An OpenAPI document without operations. */
const EMPTY = 'openapi: 3.1.0\ninfo: { title: a, version: "1" }\npaths: {}\n';
const files = folder();

/** Sources that are rejected, as words or as the texts of files, and a part of the message. */
const rows: readonly (readonly [readonly string[] | Record<string, string>, string])[] = data
  .sources as never;

/** An OpenAPI document with one operation, and the address of its API. */
const documentOf = (url: string): object => ({
  ...{ openapi: "3.1.0", info: { title: "t", version: "1" }, servers: [{ url }] },
  paths: { "/a": { get: { operationId: "a", responses: { 200: { description: "" } } } } },
});

/** A module with a plain definition. */
const define = (name: string): string =>
  `export const ${name} = { name: "${name}", description: "A tool.", execute: () => "ran" };\n`;

const anchors = Array.from({ length: 6_000 }, (_, i) => `x-a${i}: &a${i} 1\nx-b${i}: *a${i}\n`);
describe("plue list", () => {
  for (const [source, message] of rows) {
    const names = Array.isArray(source) ? source : Object.keys(source);
    it(`rejects ${names.join(" ")}, and shows no secret`, async () => {
      const words = await Promise.all(
        Object.entries(source).map(([name, text]: [string, string]) => {
          const full = text.replace("$TOOLS", TOOLS).replace("$EMPTY", EMPTY)
            .replace("$ANCHORS", () => anchors.join(""))
            .replace("$TAGS", () => `x: ${"!<a>".repeat(1_000_001)}`)
            .replace("$PAIRS", () => `x: ${"a: ".repeat(1_000_001)}`);
          return Array.isArray(source) ? full : files.write(name, full);
        }),
      );
      const { code, stderr } = await plue(["list", ...words]);
      assertEquals([code, stderr.match(/ann:|hunter2|cret/)], [2, null]);
      assertStringIncludes(stderr, message);
    });
  }
});

describe("a module", () => {
  it("may export a registry, and options of its dispatcher", async () => {
    const text = `import { ToolRegistry } from ${MOD};
      const define = (name, more) => ({ name, description: "A tool of this test.", ...more });
      export const registry = new ToolRegistry({
        tools: [
          define("ping", { risk: "safe", execute: (_, { services }) => services.word }),
          define("hidden", { risk: "high" }),
          define("ask", { risk: "safe", requiresApproval: true, execute: () => "asked" }),
        ],
        services: { word: "pong" },
      });
      export const selection = { maxRisk: "low" };
      export const dispatch = { approve: () => ({ approved: false, reason: "the owner says no" }) };`;
    // The command disposes of a registry when it has ended, so each run has a module of its own.
    let count = 0;
    const run = async (command: string, ...words: readonly string[]) => {
      const file = await files.write(`registry${count++}.mjs`, text);
      return await plue([command, "-f", file, ...words]);
    };
    assertEquals((await run("call", "ping")).stdout, "pong\n");
    assertStringIncludes((await run("list")).stderr, "2 of 3 tools");
    const explained = await run("explain", "hidden");
    assertStringIncludes(explained.stdout, "risk high is above the limit low");
    // `--yes` does not replace the module's own approver.
    assertStringIncludes((await run("call", "--yes", "ask")).stderr, "the owner says no");
  });

  it("of plain definitions applies its selection and its dispatch", async () => {
    const module = await files.write(
      "plain.mjs",
      define("kept") + define("hidden") +
        `export const selection = { allowIds: ["kept"] };
        export const dispatch = { approve: () => ({ approved: false, reason: "no" }) };
        kept.requiresApproval = true;`,
    );
    assertStringIncludes((await plue(["list", module])).stderr, "1 of 2 tools");
    const hidden = await plue(["call", "-f", module, "hidden"]);
    assertEquals([hidden.code === 0, hidden.stdout], [false, ""]);
    assertStringIncludes((await plue(["call", "--yes", "-f", module, "kept"])).stderr, "no");
  });

  it("may be joined with tools of other sources", async () => {
    const pets = await files.write("pets.yaml", PETS);
    const { stdout } = await plue(["list", TOOLS, `shop=${pets}`, "--json"]);
    assertEquals(idsIn(stdout), ["count", "fail", "launch", "search", "shop:getPet", "wait"]);
  });
});

describe("a document", () => {
  it("may be OpenAPI in YAML, with the API elsewhere", async () => {
    const received: string[] = [];
    await using api = await serving((request) => {
      received.push(`${new URL(request.url).pathname} ${request.headers.get("authorization")}`);
      return Response.json({ name: "Rex" });
    });
    const { code, stdout } = await plue([
      ...["call", "-f", await files.write("pets.yaml", PETS)],
      ...["--base-url", api.url, "--header", "authorization: Bearer s"],
      ...["api:getPet", "--id", "7"],
    ]);
    assertEquals([code, JSON.parse(stdout)], [0, { name: "Rex" }]);
    assertEquals(received, ["/pets/7 Bearer s"]);
  });

  it("on disk that names a server on this machine needs --base-url, as the command says", async () => {
    const file = await files.write("here.json", documentOf("http://127.0.0.1:4100/"));
    const { code, stderr } = await plue(["call", "-f", file, "api:a"]);
    assertEquals(code, 13);
    const advice = "Give the address of the API in --base-url\n";
    const warning = `${file}: Calls may not go to "http://127.0.0.1:4100". ${advice}`;
    assertStringIncludes(stderr, `warning: ${warning}not_executable: `);
    assertStringIncludes(stderr, `cannot be run here\n  ${advice}`);
    await using api = await serving(() => Response.json("answered"));
    const called = await plue(["call", "-f", file, "--base-url", api.url, "api:a"]);
    assertEquals([called.code, called.stderr], [0, ""]);
    const served = await plue(["serve", file, "--no-watch", "--stdio"]);
    assertStringIncludes(served.stderr, warning);
  });

  it("may be at a URL, on the server of its API", async () => {
    await using api = await serving((request) =>
      request.url.endsWith("/openapi.yaml") ? new Response(PETS) : Response.json({ name: "Tom" })
    );
    const words = ["call", "-f", `${api.url}/openapi.yaml`, "api:getPet", "--id", "8"];
    assertEquals(JSON.parse((await plue(words)).stdout), { name: "Tom" });
  });

  it("may be read from standard input", async () => {
    const { stdout } = await plue(["list", "-", "--json"], { stdin: PETS });
    assertEquals(idsIn(stdout), ["api:getPet"]);
  });

  it("in YAML may repeat keys and have some anchors, and is not quoted in warnings", async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on("warning", hear);
    for (
      const more of [
        'info: { title: b, version: "1" }\n',
        anchors.slice(0, 9).join(""),
        'x-a: !evil "\x1b]0;owned\x07"\n? [x]\n: 1\n',
      ]
    ) {
      const { stderr } = await plue(["list", await files.write("read.yaml", EMPTY + more)]);
      assertEquals(stderr.includes("as YAML"), false);
    }
    // Node emits warnings in the next turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve));
    process.off("warning", hear);
    assertEquals(warnings, []);
  });

  it("is written as definitions, with a property named __proto__ as one", async () => {
    const properties = JSON.parse(
      '{"__proto__":{"type":"string"},"path":{"type":"string"},"of \\"__proto__":{"type":"string"}}',
    );
    const parameters = { type: "object", properties, required: ["__proto__"] };
    const listed = { type: "function", function: { name: "write", description: "W.", parameters } };
    const source = await files.write("listed.json", [listed]);
    const out = join(files.path, "written.mjs");
    assertEquals((await plue(["import", source, "--out", out])).code, 0);
    const { tools: [tool] } = await import(out) as {
      readonly tools: readonly { readonly parameters: { readonly properties: object } }[];
    };
    const names = Object.keys(tool?.parameters.properties ?? {});
    assertEquals(names, ["__proto__", "path", 'of "__proto__']);
  });
});

describe("a URL", () => {
  it("that cannot be read is named without its query, with the reason", async () => {
    const api = await serving(() => new Response("no", { status: 403 }));
    const refused = await plue(["list", `${api.url}/api.json?key=s3cret`]);
    await api.stop();
    assertEquals(refused.stderr, `Cannot read ${api.url}/api.json: it responded with 403\n`);
    for (const [url, path] of [[`${api.url}/api.json?key=s3cret`, "/api.json"], [api.url, ""]]) {
      const { code, stderr } = await plue(["list", url ?? ""]);
      assertEquals([code, stderr.includes("s3cret")], [2, false]);
      assertMatch(stderr, new RegExp(`^Cannot reach http:\\S+${path}.*(?:refused)`, "i"));
    }
  });

  it("with a query is not treated as a service", async () => {
    const received: string[] = [];
    await using other = await serving((request) => {
      received.push(new URL(request.url).pathname);
      return new Response("no", { status: 404 });
    });
    const { code } = await plue(["list", `${other.url}/some?key=s3cret`]);
    assertEquals([code, new Set(received)], [2, new Set(["/some"])]);
  });

  it("on another host is treated as a service only if it is declared as one", async () => {
    const tools = [{
      id: "read",
      name: "read",
      description: "Reads\u{e0041} \u001b[2Ja file.",
      risk: "safe",
      parameters: { type: "object", properties: { path: { description: "A\u202epath" } } },
    }];
    const paths: string[] = [];
    await using served = await serving((request) => {
      paths.push(new URL(request.url).pathname);
      return request.url.includes("/tools") ? listing(tools) : new Response("no", { status: 404 });
    });
    const unnamed = await plue(["list", elsewhere(served)]);
    assertEquals([unnamed.code, paths.includes("/tools")], [2, false]);
    const named = await plue(["list", `plue:${elsewhere(served)}`, "--json"]);
    const [tool] = JSON.parse(named.stdout).tools;
    assertEquals(tool.description, "Reads [2Ja file.");
    assertEquals(tool.parameters.properties.path.description, "Apath");
  });

  it("receives the credentials, but not the host that it redirects to", async () => {
    const seen: (string | null)[] = [];
    await using other = await serving((request) => {
      seen.push(request.headers.get("x-api-key"));
      return Response.json({ openapi: "3.1.0", info: { title: "t", version: "1" }, paths: {} });
    });
    await using first = await serving((request) => {
      seen.push(request.headers.get("x-api-key"));
      return Response.redirect(`${other.url}/api.json`, 302);
    });
    await plue(["list", `${first.url}/api.json`, "--header", "x-api-key: s3cret"]);
    assertEquals(seen, ["s3cret", null]);
  });

  it("does not receive the credentials if only a document names it", async () => {
    const file = await files.write("named.json", documentOf("https://api.example"));
    const sent: (string | undefined)[] = [];
    const { fetch } = globalThis;
    globalThis.fetch = ((_url: string, { headers }: { headers: Record<string, string> }) => {
      sent.push(headers["x-api-key"]);
      return Promise.resolve(Response.json("answered"));
    }) as unknown as typeof fetch;
    const call = ["call", "-f", file, "--header", "x-api-key: s3cret"];
    try {
      const { stderr } = await plue([...call, "api:a"]);
      assertStringIncludes(stderr, 'Cannot send --header to "https://api.example"');
      const several = await plue([...call, "-f", file, "api:a"]);
      assertStringIncludes(several.stderr, "into a plue.json, each with its headers");
      assertEquals((await plue([...call, "--base-url", "https://api.example", "api:a"])).code, 0);
    } finally {
      globalThis.fetch = fetch;
    }
    assertEquals(sent, ["s3cret"]);
  });

  const part = new Uint8Array(1_048_576).fill(32);
  const location = pathToFileURL(join(files.path, "local.json")).href;
  let pages = 0;
  for (
    const [what, source, respond, message] of [
      [
        "a redirect to a file of this machine",
        "/tools.json",
        () => new Response(null, { status: 302, headers: { location } }),
        /it redirects to an address that begins with file:/,
      ],
      [
        "a text without end",
        "/api.json",
        () => new Response(new ReadableStream({ pull: (stream) => stream.enqueue(part) })),
        /its response has more than \d+ bytes/,
      ],
      [
        "a repeated cursor",
        "plue:",
        () => listing([], { nextCursor: "again" }),
        /its listing does not end/,
      ],
      [
        "endless pages",
        "plue:",
        () => listing([], { nextCursor: String(++pages) }),
        /its listing does not end/,
      ],
      [
        "something that is not a service",
        "plue:",
        () => new Response("hello"),
        /the server there is not a plue service/,
      ],
    ] as const
  ) {
    it(`that returns ${what} is rejected`, async () => {
      await using served = await serving(respond);
      const url = source === "plue:" ? source + served.url : served.url + source;
      const { code, stderr } = await plue(["list", url]);
      assertEquals(code, 2);
      assertMatch(stderr, message);
      assert(pages === 0 || pages === 65);
    });
  }
});

describe("plue complete", () => {
  it("starts no command and reaches no other host of a half written line", async () => {
    const touched = join(files.path, "touched");
    let count = 0;
    await using served = await serving(() => {
      count++;
      return listing([]);
    });
    for (
      const source of [`"touch ${touched}"`, elsewhere(served), `plue:${elsewhere(served)}`]
    ) await plue(["complete", "bash", "--", `plue call --from ${source} `]);
    assertEquals([existsSync(touched), count], [false, 0]);
  });
});

describe("plue call with a program that ignores SIGTERM and does not connect", () => {
  it("ends the program when it is interrupted", async () => {
    const pids = await files.write("pids", "");
    const text = `trap "" TERM; echo $$ > '${pids}'; exec sleep 300`;
    const call = ["call", "--from", `s=sh ${await files.write("deaf.sh", text)}`, "s:any"];
    await using plue = startProgram(process.execPath, [...RUN, "src/cli/main.ts", ...call]);
    const pid = async (): Promise<string> => (await readFile(pids, "utf8")).trim();
    while (await pid() === "") await new Promise((next) => setTimeout(next, 5));
    process.kill(plue.child.pid ?? 0, "SIGTERM"); // Deno takes child.kill() for its end.
    assertEquals((await plue.ended).code, 130);
    const words = ["-o", "stat=", "-p", await pid()];
    const state = attemptOr("", () => execFileSync("ps", words, { encoding: "utf8" }));
    // An ended program is a zombie until its new parent has read its exit code.
    assertEquals(state.replace(/^Z.*\n/, ""), "");
  });
});
