import { describe, it } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { serve, type Served } from "../runtime/serve.ts";
import { folder, plue, service } from "./support.ts";

const files = folder();

/** The address of a server, under a name that is not this machine's own. */
function elsewhere(served: Served): string {
  return served.url.replace(/\/\/[^:/]+/, "//0.0.0.0");
}

const listing = (tools: readonly object[], more: object = {}): Response =>
  Response.json({ tools, ...more });

describe("a module of plain definitions", () => {
  const define = (name: string): string =>
    `export const ${name} = { name: "${name}", description: "A tool.", execute: () => "ran" };\n`;

  it("has its selection and its dispatch obeyed", async () => {
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

  it("is rejected if a setting has an invalid type", async () => {
    const module = await files.write("wrong.mjs", define("a") + `export const selection = ["a"];`);
    const { code, stderr } = await plue(["list", module]);
    assertEquals(code, 2);
    assertStringIncludes(stderr, "its export selection must be an object");
  });

  it("is rejected with another module that has the same setting", async () => {
    const settings = "export const selection = {};";
    const first = await files.write("first.mjs", define("a") + settings);
    const second = await files.write("second.mjs", define("b") + settings);
    const { code, stderr } = await plue(["list", first, second]);
    assertEquals(code, 2);
    assertStringIncludes(stderr, "both export selection");
  });
});

describe("the first lines of plue serve", () => {
  it("list twenty tools of many", async () => {
    const module = await files.write(
      "many.mjs",
      `export default Array.from({ length: 50 }, (_, index) => ({
        name: "tool" + index, description: "A tool.", risk: "safe",
      }));`,
    );
    const controller = new AbortController();
    const ended = plue(["serve", module, "--port", "0", "--no-watch"], {
      controller,
      heard: () => controller.abort(),
    });
    const { stdout } = await ended;
    assertEquals(stdout.match(/^ {2}tool\d+ /gm)?.length, 20);
    assertMatch(stdout, /^ {2}and 30 more: http:/m);
  });
});

describe("a URL on another host", () => {
  const tools = [{
    id: "read",
    name: "read",
    description: "Reads\u{e0041} \u001b[2Ja file.",
    risk: "safe",
    parameters: { type: "object", properties: { path: { description: "A\u202epath" } } },
  }];

  it("is taken for a service only where it is named as one", async () => {
    const paths: string[] = [];
    const served = await serve((request) => {
      paths.push(new URL(request.url).pathname);
      return request.url.includes("/tools") ? listing(tools) : new Response("no", { status: 404 });
    });
    const unnamed = await plue(["list", elsewhere(served)]);
    assertEquals([unnamed.code, paths.includes("/tools")], [2, false]);
    const named = await plue(["list", `plue:${elsewhere(served)}`, "--json"]);
    await served.stop();
    const [tool] = JSON.parse(named.stdout).tools;
    assertEquals(tool.description, "Reads [2Ja file.");
    assertEquals(tool.parameters.properties.path.description, "Apath");
  });

  it("is given the credentials, and not the host that it redirects to", async () => {
    const seen: (string | null)[] = [];
    const other = await serve((request) => {
      seen.push(request.headers.get("x-api-key"));
      return Response.json({ openapi: "3.1.0", info: { title: "t", version: "1" }, paths: {} });
    });
    const first = await serve((request) => {
      seen.push(request.headers.get("x-api-key"));
      return Response.redirect(`${other.url}/api.json`, 302);
    });
    await plue(["list", `${first.url}/api.json`, "--header", "x-api-key: s3cret"]);
    await Promise.all([first.stop(), other.stop()]);
    assertEquals(seen, ["s3cret", null]);
  });

  it("is not given the credentials where only a document names it", async () => {
    const document = {
      ...{ openapi: "3.1.0", info: { title: "t", version: "1" } },
      servers: [{ url: "https://api.example" }],
      paths: { "/a": { get: { operationId: "a", responses: { 200: { description: "" } } } } },
    };
    const file = await files.write("named.json", JSON.stringify(document));
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
      assertEquals((await plue([...call, "--base-url", "https://api.example", "api:a"])).code, 0);
    } finally {
      globalThis.fetch = fetch;
    }
    assertEquals(sent, ["s3cret"]);
  });

  it("with a password is rejected without showing it", async () => {
    for (const password of ["s3'cret", 's3"cret', "s3@cret"]) {
      const { code, stderr } = await plue(["list", `https://ann:${password}@x.example/api.json`]);
      assertEquals([code, stderr.includes("cret")], [2, false]);
    }
  });
});

describe("an answer without end", () => {
  it("of a listing with a repeated cursor is rejected", async () => {
    const served = await serve(() => listing([], { nextCursor: "again" }));
    const { code, stderr } = await plue(["list", `plue:${served.url}`]);
    await served.stop();
    assertEquals(code, 2);
    assertStringIncludes(stderr, "its listing does not end");
  });

  it("of endless pages is rejected", async () => {
    let pages = 0;
    const served = await serve(() => listing([], { nextCursor: String(++pages) }));
    const { code } = await plue(["list", `plue:${served.url}`]);
    await served.stop();
    assertEquals([code, pages], [2, 65]);
  });

  it("of a document is cut off", async () => {
    const part = new Uint8Array(1_048_576).fill(32);
    const served = await serve(() =>
      new Response(new ReadableStream({ pull: (stream) => stream.enqueue(part) }))
    );
    const { code, stderr } = await plue(["list", `${served.url}/api.json`]);
    await served.stop();
    assertEquals(code, 2);
    assertMatch(stderr, /it answers with more than \d+ bytes/);
  });
});

describe("a service", () => {
  const tool = { id: "run", name: "run", description: "Runs.", risk: "low", tags: [] };
  /** Calls the tool of a service whose calls are answered in a way. */
  const callAt = async (answer: () => Response) => {
    const paths: string[] = [];
    const served = await serve(({ url }) => {
      const { pathname } = new URL(url);
      paths.push(pathname);
      return pathname === "/tools" ? listing([tool]) : answer();
    });
    const ran = await plue(["call", "--yes", "-f", served.url, "run"]);
    await served.stop();
    return { ...ran, paths };
  };
  const EVENTS = { "content-type": "text/event-stream" };

  it("gets no approval of other arguments that would be cut off in the question", async () => {
    const args = { command: `${"x".repeat(2_000)}; evil` };
    const result = {
      ok: false,
      error: { code: "input_required", message: "It asks.", retryable: false },
      questions: [{ key: "yes", kind: "approval", message: "Run it?", arguments: args }],
      ticket: "ticket",
    };
    const data = JSON.stringify({ type: "result", result });
    const { stderr, paths } = await callAt(() =>
      new Response(`event: result\ndata: ${data}\n\n`, { headers: EVENTS })
    );
    assertStringIncludes(stderr, '"/message" must have at most 2000 characters');
    assertEquals(paths, ["/tools", "/tools/run/execute"]);
  });

  const part = new Uint8Array(1_048_576).fill(32);
  for (
    const [name, status, headers] of [
      ["an event", 200, EVENTS],
      ["a task", 202, { "content-type": "application/json" }],
    ] as const
  ) {
    it(`has ${name} without end cut off`, async () => {
      const pull = (stream: ReadableStreamDefaultController): void => stream.enqueue(part);
      const { code } = await callAt(() =>
        new Response(new ReadableStream({ pull }), { status, headers })
      );
      assertEquals(code, 11);
    });
  }
});

describe("a source", () => {
  it("cannot redirect to a file of this machine", async () => {
    const file = await files.write("local.json", JSON.stringify([{ name: "local" }]));
    const served = await serve(() =>
      new Response(null, { status: 302, headers: { location: pathToFileURL(file).href } })
    );
    const { code, stderr } = await plue(["list", `${served.url}/tools.json`]);
    await served.stop();
    assertEquals(code, 2);
    assertStringIncludes(stderr, "it redirects to an address that begins with file:");
  });
});

describe("plue complete", () => {
  it("starts no command and reaches no other host of a half written line", async () => {
    const touched = join(files.path, "touched");
    await plue(["complete", "bash", "--", `plue call --from "touch ${touched}" `]);
    assertEquals(existsSync(touched), false);
    let asked = 0;
    const served = await serve(() => {
      asked++;
      return listing([]);
    });
    await plue(["complete", "bash", "--", `plue call --from ${elsewhere(served)} `]);
    await plue(["complete", "bash", "--", `plue call --from plue:${elsewhere(served)} `]);
    await served.stop();
    assertEquals(asked, 0);
  });
});

describe("plue import --out", () => {
  it("writes a property named __proto__ as one", async () => {
    const properties = JSON.parse(
      '{"__proto__":{"type":"string"},"path":{"type":"string"},"of \\"__proto__":{"type":"string"}}',
    );
    const parameters = { type: "object", properties, required: ["__proto__"] };
    const listed = [{
      type: "function",
      function: { name: "write", description: "W.", parameters },
    }];
    const source = await files.write("listed.json", JSON.stringify(listed));
    const out = join(files.path, "written.mjs");
    assertEquals((await plue(["import", source, "--out", out])).code, 0);
    const { tools: [tool] } = await import(out) as {
      readonly tools: readonly { readonly parameters: { readonly properties: object } }[];
    };
    assertEquals(Object.keys(tool?.parameters.properties ?? {}), [
      "__proto__",
      "path",
      'of "__proto__',
    ]);
  });
});

/** An OpenAPI document without operations. */
const EMPTY = 'openapi: 3.1.0\ninfo: { title: a, version: "1" }\npaths: {}\n';

describe("a YAML document", () => {
  it("is read in linear time, and the last of duplicate keys is used", async () => {
    const file = await files.write(
      "twice.yaml",
      'openapi: 3.1.0\ninfo: { title: a, version: "1" }\ninfo: { title: b, version: "1" }\npaths: {}\n',
    );
    const { stderr } = await plue(["list", file]);
    assertEquals(stderr.includes("as YAML"), false);
  });

  it("is not quoted in warnings of the parser", async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on("warning", hear);
    const text = `${EMPTY}x-a: !evil "\x1b]0;owned\x07"\n? [x]\n: 1\n`;
    await plue(["list", await files.write("tagged.yaml", text)]);
    // Warnings come with the next turn.
    await new Promise((resolve) => setTimeout(resolve));
    process.off("warning", hear);
    assertEquals(warnings, []);
  });

  it("is rejected with too many anchors, whose resolution takes quadratic time", async () => {
    const lines = Array.from({ length: 6_000 }, (_, i) => `x-a${i}: &a${i} 1\nx-b${i}: *a${i}\n`);
    const few = await plue([
      "list",
      await files.write("few.yaml", EMPTY + lines.slice(0, 9).join("")),
    ]);
    assertEquals(few.stderr.includes("as YAML"), false);
    const { code, stderr } = await plue([
      "list",
      await files.write("many.yaml", EMPTY + lines.join("")),
    ]);
    assertEquals(code, 2);
    assertStringIncludes(stderr, "more than 10000 anchors and aliases");
  });
});

describe("a state folder", () => {
  const ofTools = ["serve", "test/cli/tools.mjs", "--no-watch", "--port", "0", "--state"];

  it("that other users can write to is rejected", async () => {
    if (process.platform === "win32") return;
    const path = join(files.path, "open");
    await mkdir(path);
    await chmod(path, 0o777);
    const { code, stderr } = await plue([...ofTools, path]);
    assertEquals(code, 1);
    assertStringIncludes(stderr, "other users can write to it");
  });

  it("that is a file, or in one, is rejected", async () => {
    const file = await files.write("file", "");
    for (const path of [file, join(file, "state")]) {
      const { code, stderr } = await plue([...ofTools, path]);
      assertEquals(code, 1);
      assertMatch(stderr, /Cannot keep the state in ".*file.*": it must be a folder/);
    }
  });

  it("whose database is a link is rejected", async () => {
    if (process.platform === "win32") return;
    const path = join(files.path, "linked");
    await mkdir(path, { mode: 0o700 });
    await symlink(await files.write("victim.db", ""), join(path, "calls.db"));
    const { code, stderr } = await plue([...ofTools, path]);
    assertEquals(code, 1);
    assertStringIncludes(stderr, "calls.db in it must be a file, and not a link");
  });
});

describe("the log of plue serve", () => {
  it("shows no control characters of a client", async () => {
    const module = await files.write(
      "echo.mjs",
      `export const echo = { name: "echo", description: "A tool.", risk: "safe",
        parameters: { type: "object" },
        execute: ({ path }) => { throw new Error("no file " + path); } };`,
    );
    const controller = new AbortController();
    const heard = Promise.withResolvers<string>();
    const ended = plue(["serve", module, "--port", "0", "--no-watch", "--json"], {
      controller,
      heard: (text) => text.startsWith("{") && heard.resolve(JSON.parse(text).url),
    });
    const response = await fetch(`${await heard.promise}/tools/echo/execute`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ arguments: { path: "\u001b]0;PWN\u0007\u202e" } }),
    });
    await response.text();
    controller.abort();
    const { stderr } = await ended;
    assertStringIncludes(stderr, "no file ]0;PWN");
    assertEquals(["\u001b", "\u0007", "\u202e"].filter((hidden) => stderr.includes(hidden)), []);
  });

  it("accepts the right token after many invalid ones from the same address", async () => {
    const token = "sesame-sesame-sesame";
    await using served = await service(["test/cli/tools.mjs"], { PLUE_TOKEN: token });
    const ask = async (given: string): Promise<number> => {
      const headers = { authorization: `Bearer ${given}` };
      const response = await fetch(`${served.url}/tools`, { headers });
      await response.text();
      return response.status;
    };
    const wrong = new Set<number>();
    for (let attempt = 0; attempt < 12; attempt++) wrong.add(await ask(`wrong-${attempt}`));
    assertEquals([...wrong], [401, 429]);
    assertEquals(await ask(token), 200);
  });
});
