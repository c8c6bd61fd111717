import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { Readable, Writable } from "node:stream";
import { memoryCallStore, storedTickets } from "../../src/adapters/calls/mod.ts";
import { importMcpServer } from "../../src/adapters/mcp/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../src/adapters/typebox/mod.ts";
import { logText } from "../../src/cli/serve/service.ts";
import { loadTools } from "../../src/cli/sources/mod.ts";
import { type CommandIo, EXIT_CODES } from "../../src/cli/terminal.ts";
import { isSuspended } from "../../src/tool/mod.ts";
import { maybe } from "../support/skip.ts";
import { deferred, FakeClock } from "../support/waiting.ts";
import { folder, idsIn, listing, plue, postJson, rejects, type Service } from "./support.ts";
import { service, serving } from "./support.ts";

const TOOLS = join(import.meta.dirname, "tools.mjs");

/** The package, for modules that are written into another folder. */
const MOD = JSON.stringify(new URL("../../mod.ts", import.meta.url).href);
const files = folder();

/** The environment of a command without a terminal. */
const quiet: CommandIo = {
  ...{ env: {}, stdin: Readable.from([]), stdout: new Writable(), stderr: new Writable() },
  ...{ signal: new AbortController().signal, interrupt() {} },
};

/** Serves the tools of a module until it has printed something. */
async function serveUntil(module: string, printed: string) {
  const controller = new AbortController();
  return await plue(["serve", module, "--port", "0", "--no-watch"], {
    controller,
    heard: (text) => text.includes(printed) && controller.abort(),
  });
}

describe("plue serve", () => {
  it("serves tools of medium risk or less, over HTTP and MCP", async () => {
    await using served = await service([TOOLS]);
    assertEquals(served.tools, ["count", "fail", "search", "wait"]);
    const listed = await (await fetch(`${served.url}/tools`)).json();
    assertEquals(listed.tools.length, 4);
    assertStringIncludes(await (await fetch(served.url)).text(), "<!doctype html>");
    const openapi = await (await fetch(`${served.url}/openapi.json`)).json();
    assertEquals(openapi.info.title, "plue");
    const { stdout } = await plue(["list", `far=${served.url}/mcp`, "--json"]);
    assertEquals(idsIn(stdout)[0], "far:count");
  });

  it("serves the callbacks of a module, which must have different paths", async () => {
    const module = (path: string) =>
      files.write(
        `${path}.mjs`,
        `export const ${path} = { name: "${path}", description: "Greets." };
export const callback = ["/a", "/${path}"].map((path) => Object.assign(() => new Response(), { path }));`,
      );
    await using served = await service([await module("b")]);
    for (const path of ["/a", "/b"]) assert((await fetch(served.url + path)).ok);
    await rejects(["list", await module("a")], "callback must be made by oauthCallback(), each");
  });

  it("shows MCP clients the bridge with --bridge, and HTTP clients that request it", async () => {
    await using served = await service([TOOLS, "--bridge"]);
    const ids = ["call_tool", "describe_tools", "search_tools"];
    const { stdout } = await plue(["list", `far=${served.url}/mcp`, "--json"]);
    assertEquals(idsIn(stdout), ids.map((id) => `far:${id}`));
    const { tools } = await (await fetch(`${served.url}/tools?bridge=1`)).json();
    assertEquals(tools.map(({ id }: { id: string }) => id).toSorted(), ids);
    const url = `${served.url}/tools/call_tool/execute?bridge=1`;
    const args = { name: "search", arguments: { query: "hills" } };
    const response = await postJson(url, { arguments: args }, { accept: "application/json" });
    assertEquals((await response.json()).content, { query: "hills" });
  });

  it("lists run_code with --code; MCP clients receive it and the search only", async () => {
    await using served = await service([TOOLS, "--code"]);
    const found = await (await fetch(`${served.url}/tools?q=counts`)).json();
    assertEquals(found.tools.map(({ id }: { id: string }) => id), ["count"]);
    assertEquals(served.tools, ["count", "fail", "run_code", "search", "search_tools", "wait"]);
    const { stdout } = await plue(["list", `far=${served.url}/mcp`, "--json"]);
    assertEquals(idsIn(stdout), ["far:run_code", "far:search_tools"]);
    const body = { arguments: { code: 'return await tools.search({ query: "hills" })' } };
    const url = `${served.url}/tools/run_code/execute`;
    const called = await postJson(url, body);
    assertEquals((await called.json()).content, { value: { query: "hills" } });

    const { id } = await (await postJson(url, body, { prefer: "respond-async" })).json();
    const follow = { headers: { accept: "text/event-stream" } };
    const states = await (await fetch(`${served.url}/calls/${id}`, follow)).text();
    assertStringIncludes(states, '"content":{"value":{"query":"hills"}}');
  });

  it("shows MCP clients the skills of --skills whose tools are served", async () => {
    const skills = [["sailing", "search Bash"], ["rowing", "a_tool_that_is_not_here"]] as const;
    for (const [name, tools] of skills) {
      await mkdir(join(files.path, "skills", name), { recursive: true });
      const head = `name: ${name}\ndescription: How to.\nallowed-tools: ${tools}`;
      await files.write(`skills/${name}/SKILL.md`, `---\n${head}\n---\nFirst search.`);
    }
    await using served = await service([TOOLS, "--skills", join(files.path, "skills")]);
    const client = new Client({ name: "test", version: "1.0.0" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${served.url}/mcp`)));
    const listed = await new SkillsClient(client).list();
    assertEquals(listed.skills.map(({ uri }) => uri), ["skill://sailing/SKILL.md"]);
    await client.close();
    const missing = join(files.path, "no-skills");
    const words = ["serve", TOOLS, "--no-watch", "--skills", missing];
    await rejects(words, `Cannot read the skills in "${missing}"`);
  });

  it("asks the caller to approve calls that the rules of --rules do not allow", async () => {
    const document = [{ tool: "search", when: { "/query": { const: "sea" } }, else: "ask" }];
    const file = await files.write("rules.json", document);
    await using served = await service([TOOLS, "--rules", file]);
    const search = async (query: string) => {
      const url = `${served.url}/tools/search/execute`;
      const response = await postJson(url, { arguments: { query } });
      return (await response.json()).status ?? response.status;
    };
    assertEquals([await search("sea"), await search("hills")], [200, "input_required"]);

    const wrong = await files.write("wrong.json", '[{ "tool": "search", "wenn": {} }]');
    for (
      const [words, why] of [
        [
          ["--rules", wrong],
          `Cannot use the rules in "${wrong}": Cannot read rule 1: "/wenn" is not one of its fields`,
        ],
        [["--rules", `${wrong}.none`], "no such file"],
        [["--code", "--bridge"], "--bridge has no effect with --code"],
      ] as const
    ) {
      await rejects(["serve", TOOLS, "--no-watch", "--port", "0", ...words], why);
    }
  });

  it("requests approval from callers on this machine, but not from others or with a token", async () => {
    const file = await files.write(
      "pay.mjs",
      `export const pay = {
        name: "pay", description: "Pays an invoice.", risk: "low", requiresApproval: true,
        execute: () => "paid",
      };`,
    );
    const sources = { own: { from: file } };
    const gateway = await files.write("pay.json", { sources });
    const callers = { tokens: { ann: { token: "sesame-sesame-sesame" } } };
    const closed = await files.write("closed.json", { sources, callers });
    const rules = await files.write("none.json", "[]");
    const PLUE_TOKEN = "sesame-sesame-sesame";
    const cases = [
      [[file], {}, "input_required"],
      [[file], { PLUE_TOKEN }, "approval_required"],
      [[file, "--rules", rules], { PLUE_TOKEN }, "input_required"],
      [["-c", gateway], {}, "input_required"],
      [["-c", gateway], { PLUE_TOKEN }, "approval_required"],
      [["-c", closed], {}, "approval_required"],
    ] as const;
    for (const [words, env, wanted] of cases) {
      await using served = await service(words, env);
      const authorization = `Bearer ${PLUE_TOKEN}`;
      const response = await postJson(`${served.url}/tools/pay/execute`, {}, { authorization });
      const { status, code = status } = await response.json();
      assertEquals([...words, code], [...words, wanted]);
    }
  });

  it("serves other hosts and their pages behind a proxy with TLS, but not without a token", async () => {
    const PLUE_TOKEN = "sesame-sesame-sesame";
    const tokens = { ann: { token: PLUE_TOKEN } };
    const path = await files.write("own.json", {
      sources: { own: { from: TOOLS } },
      callers: { tokens },
    });
    const cases = [
      [[TOOLS], { PLUE_TOKEN }, [200, 403]],
      [["-c", path], {}, [200, 403]],
      [[TOOLS], {}, [421, 421]],
    ] as const;
    for (const [words, env, wanted] of cases) {
      await using served = await service(words, env);
      const statusFor = (origin: string) =>
        new Promise((resolve) => {
          // The function fetch does not send another host.
          const host = "tools.example.com";
          const headers = { host, origin, authorization: `Bearer ${PLUE_TOKEN}` };
          get(`${served.url}/tools`, { headers }, (response) => {
            resolve(response.resume().statusCode);
          });
        });
      const statuses = [
        await statusFor("https://tools.example.com"),
        await statusFor("https://evil.example"),
      ];
      assertEquals([...words, ...statuses], [...words, ...wanted]);
    }
  });

  it("listens at each loopback address", async () => {
    // Only Linux has the whole network 127.0.0.0/8.
    for (const HOST of ["localhost", process.platform === "linux" ? "127.0.0.2" : "127.0.0.1"]) {
      await using served = await service([TOOLS], { HOST });
      assertStringIncludes(served.url, `http://${HOST}:`);
      assertEquals((await fetch(`${served.url}/tools`)).status, 200);
    }
  });

  it("reports a used port", async () => {
    await using other = await serving(() => new Response());
    const { port } = new URL(other.url);
    const { code, stderr } = await plue(["serve", TOOLS, "--no-watch"], { env: { PORT: port } });
    const why = "the port is in use; choose another one with --port or PORT";
    assertEquals([code, stderr], [2, `Cannot serve on 127.0.0.1, port ${port}: ${why}\n`]);
  });

  it("serves the tools that the flags select among the public tools of the module", async () => {
    await using served = await service([TOOLS, "--max-risk", "high", "--role", "control"]);
    assertEquals(served.tools.includes("launch"), true);
    await using few = await service([TOOLS, "--tag", "read-only"]);
    assertEquals(few.tools, ["search"]);
  });

  it("notifies listeners of tools that become available, over HTTP and MCP", async () => {
    const gate = join(files.path, "gate");
    const module = await files.write(
      "gated.mjs",
      `import { existsSync } from "node:fs";
      const isAvailable = () => existsSync(${JSON.stringify(gate)});
      export const gated = { name: "gated", description: "Waits.", isAvailable };`,
    );
    await using served = await service([module]);
    const registry = new ToolRegistry();
    const options = { namespace: "far", registry };
    await using _client = await importMcpServer(`${served.url}/mcp`, options);
    const added = new Promise<string>((resolve) => {
      registry.subscribe(({ type, tool }) => type === "added" && resolve(tool.id));
    });
    const events = await fetch(`${served.url}/events`);
    await files.write("gate", "");
    assertEquals(await added, "far:gated");
    let printed = "";
    for await (const part of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      if ((printed += part).includes("\ndata: ")) break;
    }
    assertStringIncludes(printed, 'data: {"type":"added","id":"gated"}');
  });

  it("returns descriptions for their reader, including as a source", async () => {
    const module = await files.write(
      "read.mjs",
      `export const read = {
        name: "read",
        risk: "low",
        description: ({ locale, model = "?" }) => {
          if (locale === "xx") throw new Error("No such language");
          return (locale === "de" ? "Liest für " : "Reads for ") + model;
        },
      };`,
    );
    await using served = await service([module, "--locale", "de"]);
    for (
      const [words, text] of [
        [["-f", module], "Reads for ?"],
        [["-f", module, "--locale", "de", "--model", "m1"], "Liest für m1"],
        [["-f", served.url], "Liest für ?"],
        [["-f", served.url, "--locale", "fr", "--model", "m1"], "Reads for m1"],
      ] as const
    ) {
      assertStringIncludes((await plue(["show", "read", ...words])).stdout, text);
      assertStringIncludes((await plue(["list", ...words])).stdout, text);
      assertStringIncludes((await plue(["export", "--to", "anthropic", ...words])).stdout, text);
      assertStringIncludes((await plue(["call", ...words, "read", "--help"])).stdout, text);
    }
    const failed = await plue(["show", "read", "-f", module, "--locale", "xx"]);
    assertStringIncludes(failed.stdout, "Reads for ?");
    assertMatch(failed.stderr, /^warning: description of "read": [^\n]+: No such language\n$/);
    const wrong = ["show", "read", "-f", module, "--locale", "pt BR"];
    await rejects(wrong, "It must be 1 to 128 visible ASCII characters");
  });

  it("lists twenty tools of many", async () => {
    const module = await files.write(
      "many.mjs",
      `export default Array.from({ length: 50 }, (_, index) => ({
        name: "tool" + index, description: "A tool.", risk: "safe",
      }));`,
    );
    const { stdout } = await serveUntil(module, "");
    assertEquals(stdout.match(/^ {2}tool\d+ /gm)?.length, 20);
    assertMatch(stdout, /^ {2}and 30 more: http:/m);
  });

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
    const args = { path: "\u001b]0;PWN\u0007\u202e" };
    await (await postJson(`${await heard.promise}/tools/echo/execute`, { arguments: args })).text();
    controller.abort();
    const { stderr } = await ended;
    assertStringIncludes(stderr, "no file ]0;PWN");
    assertEquals(["\u001b", "\u0007", "\u202e"].filter((hidden) => stderr.includes(hidden)), []);
  });

  it("accepts the right token after many invalid ones from the same address", async () => {
    const token = "sesame-sesame-sesame";
    await using served = await service([TOOLS], { PLUE_TOKEN: token });
    const ask = async (url: string): Promise<number> => {
      const headers = { authorization: `Bearer ${url}` };
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

describe("a plue service", () => {
  it("is a source: its tools are called there", async () => {
    await using served = await service([TOOLS]);
    const { code, stdout, stderr } = await plue(["call", "-f", served.url, "count", "--to", "2"]);
    assertEquals([code, stdout], [0, "done\n"]);
    assertStringIncludes(stderr, "2/2 number 2\n");
    assertStringIncludes(stderr, "line 2\n");
    assertStringIncludes(stderr, '{"counted":2}\n');
  });

  it("receives the abort of a call", async () => {
    await using served = await service([TOOLS]);
    const controller = new AbortController();
    const { code } = await plue(["call", "-f", served.url, "wait"], {
      controller,
      heard: (text) => text.includes("waiting") && controller.abort(),
    });
    assertEquals(code, 130);
  });

  describe("that asks a question", () => {
    const schema = { type: "object", properties: { seats: { type: "integer" } } };
    const form = JSON.stringify({ message: "How many?", schema });
    const text = `import { ToolRegistry } from ${MOD};
      let begun = 0;
      const tool = (name, more) => ({ name, description: "A tool of this test.", ...more });
      const execute = async (_, { ask, step, progress }) => {
        progress(1, 2, "looked");
        await step("begin", () => void begun++);
        const { content } = await ask("form", ${form});
        return { begun, ...content };
      };
      const write = { requiresApproval: true, requiresTransaction: true, execute: () => "written" };
      const confirm = async (_, { ask }) =>
        (await ask("sure", { kind: "approval", message: "Sure?" })).action === "accept" && "written";
      const login = { kind: "authorization", message: "Act as you", url: "https://hub.example/" };
      export const registry = new ToolRegistry({
        tools: [
          tool("login", { execute: async (_, { ask }) => (await ask("in", login)).action }),
          tool("book", { execute }),
          tool("cook", { execute, execution: "task" }),
          tool("write", write),
          tool("sure", { execute: confirm }),
          tool("task", { execute: confirm, execution: "task" }),
        ],
      });
      const none = () => {};
      export const transactions = { begin: () => ({ id: "1" }), commit: none, rollback: none };
      export const dispatch = { approve: "ask" };`;
    let count = 0;
    const asking = async (): Promise<Service> =>
      await service([await files.write(`asking${count++}.mjs`, text)]);

    for (const name of ["book", "cook"]) {
      it(`is answered by the caller of ${name}`, async () => {
        await using served = await asking();
        await using loaded = await loadTools([served.url], quiet);
        const heard: unknown[] = [];
        const result = await new ToolDispatcher(loaded.registry).dispatch({ name }, {
          onQuestion: ({ message }) => ({ action: "accept", content: { seats: message.length } }),
          progress: ({ message }) => void heard.push(message),
        });
        assertEquals(result.ok && result.content, { begun: 1, seats: 9 });
        assertEquals(heard.includes("looked"), true);
      });

      it(`is not called twice where ${name} waits here as well`, async () => {
        await using served = await asking();
        await using loaded = await loadTools([served.url], quiet);
        const tickets = storedTickets(memoryCallStore());
        const dispatcher = new ToolDispatcher(loaded.registry, { tickets });
        const waiting = await dispatcher.dispatch({ name });
        assert(isSuspended(waiting));
        const [question] = waiting.questions;
        assertEquals(question?.message, "How many?");
        const answer = { action: "accept", content: { seats: 4 } } as const;
        const result = await dispatcher.resume(waiting.ticket, { [question?.key ?? ""]: answer });
        assertEquals(result.ok && result.content, { begun: 1, seats: 4 });
      });
    }

    it("is labelled as imported, and gets no permission of one caller among several", async () => {
      await using served = await asking();
      await using loaded = await loadTools([served.url], quiet);
      const labels = loaded.registry.getTool("login")?.labels;
      assertEquals(labels, { produces: ["untrusted"], sends: true });
      const dispatcher = new ToolDispatcher(loaded.registry);
      const onQuestion = () => ({ action: "accept" }) as const;
      const ends = [];
      for (const principal of [undefined, "ann"]) {
        const result = await dispatcher.dispatch({ name: "login" }, { principal, onQuestion });
        ends.push(result.ok ? result.content : result.error.code);
      }
      assertEquals(ends, ["accept", "denied"]);
    });

    it("cancels a task with a question that cannot be shown here", async () => {
      const module = await files.write(`asking${count++}.mjs`, text);
      await using served = await service([module], { PLUE_TOKEN: "sesame-sesame-sesame" });
      const authorization = "Bearer sesame-sesame-sesame";
      const header = `authorization: ${authorization}`;
      const { code } = await plue(["call", "-f", served.url, "--header", header, "cook"]);
      assertEquals(code, EXIT_CODES.input_unavailable);
      const response = await fetch(`${served.url}/calls`, { headers: { authorization } });
      assertMatch(await response.text(), /"status":"cancelled"/);
    });

    it("is approved by --yes, at the start of a call, during it and during a task", async () => {
      await using served = await asking();
      for (const name of ["write", "sure", "task"]) {
        const { code, stdout } = await plue(["call", "-f", served.url, "--yes", name]);
        assertEquals([code, stdout], [0, "written\n"]);
        const refused = await plue(["call", "-f", served.url, name]);
        assertEquals(refused.code, EXIT_CODES.input_unavailable);
        assertStringIncludes(refused.stderr, "it asks a question, and its caller cannot be asked");
        assertStringIncludes(refused.stderr, "Call it on a terminal, where you are asked");
      }
    });
  });

  it("requires its token, which no message shows", async () => {
    const token = "sesame-sesame-sesame";
    await using served = await service([TOOLS], { PLUE_TOKEN: token });
    await rejects(["list", served.url], 'give a token with --header "authorization: …"');
    const header = `authorization: Bearer ${token}`;
    const { code, stdout } = await plue(["call", "-f", served.url, "--header", header, "fail"]);
    assertEquals([code, stdout.includes(token)], [20, false]);
  });

  const tool = { id: "run", name: "run", description: "Runs.", risk: "low", tags: [] };
  /** Calls the tool of a service that answers calls with this response. */
  const callAt = async (answer: () => Response) => {
    const paths: string[] = [];
    await using served = await serving(({ url }) => {
      const { pathname } = new URL(url);
      paths.push(pathname);
      return pathname === "/tools" ? listing([tool]) : answer();
    });
    return { ...await plue(["call", "--yes", "-f", served.url, "run"]), paths };
  };
  const EVENTS = { "content-type": "text/event-stream" };

  for (
    const [name, ...asked] of [
      ["a question that is for no person", "input"],
      ["the permission of a person", "authorization", "approval"],
      ["three permissions", "authorization", "authorization", "authorization", "authorization"],
    ] as const
  ) {
    it(`does not exceed the timeout of the caller after ${name}`, async () => {
      const hung = deferred();
      const kinds = [...asked];
      const respond = (): Response => {
        const kind = kinds.shift();
        if (kind === undefined) hung.resolve();
        const url = kind === "authorization" && "http://localhost/auth";
        const message = "May it?";
        const questions = [{ key: "a", kind, message, resumes: true, ...url && { url } }];
        const error = { code: "input_required", message: "It asks." };
        const result = { ok: false, error, questions, ticket: "ticket" };
        const data = JSON.stringify({ type: "result", result });
        const body = kind === undefined ? new ReadableStream() : `event: result\ndata: ${data}\n\n`;
        return new Response(body, { headers: EVENTS });
      };
      await using served = await serving(({ url }) =>
        new URL(url).pathname === "/tools" ? listing([tool]) : respond()
      );
      await using loaded = await loadTools([served.url], quiet);
      const clock = new FakeClock();
      const dispatcher = new ToolDispatcher(loaded.registry, { clock, timeoutMs: 1_000 });
      const onQuestion = () => ({ action: "accept" }) as const;
      const result = dispatcher.dispatch({ name: "run" }, { onQuestion });
      await hung.promise;
      const left = [...clock.timers].map(({ at }) => at - clock.now());
      assertEquals(left, [1_000]);
      clock.advance(1_000);
      assertEquals((await result).ok, false);
    });
  }

  it("cannot be approved if the question would truncate other arguments", async () => {
    const args = { command: `${"x".repeat(70_000)}; evil` };
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
    assertStringIncludes(stderr, "more than 65536 bytes of JSON together");
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

describe("logText()", () => {
  it("indents the lines after the first, so that a caller's text is not read as a message of plue", () => {
    const text = logText(new Error("no tool\nwarning: a caller's line\r\n\x1b[2Jthe last one"));
    const [first, ...lines] = text.split(/\r|\n/);
    assertEquals(first, "Error: no tool");
    assert(lines.length > 2 && lines.every((line) => line.startsWith("    ")), text);
  });
});

describe("a state folder", () => {
  const open = async (path: string) => {
    await mkdir(path);
    await chmod(path, 0o777);
  };
  const linked = async (path: string) => {
    await mkdir(path, { mode: 0o700 });
    await symlink(await files.write("victim.db", ""), join(path, "calls.db"));
  };
  const file = (path: string) => writeFile(path, "");
  for (
    const [name, arrange, message] of [
      ["open", open, "other users can write to it"],
      ["linked", linked, "calls.db in it must be a file, and not a link"],
      ["file", file, 'file": it must be a folder'],
      ["file/state", () => Promise.resolve(), 'file/state": it must be a folder'],
    ] as const
  ) {
    const test = maybe(process.platform !== "win32", "Windows has no file modes");
    test(`is rejected: ${name}, because ${message}`, async () => {
      const path = join(files.path, name);
      await arrange(path);
      const words = ["serve", TOOLS, "--no-watch", "--port", "0", "--state", path];
      const { code, stderr } = await plue(words);
      assertEquals(code, 1);
      assertStringIncludes(stderr, message);
    });
  }
});
