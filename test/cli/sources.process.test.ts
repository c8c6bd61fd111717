import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { join } from "node:path";
import process from "node:process";
import { Readable, Writable } from "node:stream";
import { memoryCallStore, storedTickets } from "../../src/adapters/calls/mod.ts";
import { importMcpServer } from "../../src/adapters/mcp/mod.ts";
import { ToolDispatcher, ToolRegistry } from "../../src/adapters/typebox/mod.ts";
import { loadTools } from "../../src/cli/sources/mod.ts";
import { type CommandIo, EXIT_CODES } from "../../src/cli/terminal.ts";
import { isSuspended } from "../../src/tool/mod.ts";
import { serve, type Served } from "../runtime/serve.ts";
import { folder, plue, type Service, service } from "./support.ts";

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

const files = folder();

/** The environment of a command without a terminal. */
const quiet: CommandIo = {
  env: {},
  stdin: Readable.from([]),
  stdout: new Writable(),
  stderr: new Writable(),
  signal: new AbortController().signal,
  interrupt() {},
};

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
    // The module's own approver is not passed over.
    assertStringIncludes((await run("call", "--yes", "ask")).stderr, "the owner says no");
  });

  it("may be joined with tools of other sources", async () => {
    const pets = await files.write("pets.yaml", PETS);
    const { stdout } = await plue(["list", TOOLS, `shop=${pets}`, "--json"]);
    const ids = JSON.parse(stdout).tools.map(({ id }: { id: string }) => id);
    assertEquals(ids, ["count", "fail", "launch", "search", "shop:getPet", "wait"]);
  });

  it("may not be combined with a source with the same ids", async () => {
    const { code, stderr } = await plue(["list", TOOLS, `module:${TOOLS}?again`]);
    assertEquals(code, 2);
    assertMatch(stderr, /^Cannot /);
  });

  it("without tools is rejected", async () => {
    const file = await files.write("empty.mjs", "export const x = 1;");
    const { code, stderr } = await plue(["list", file]);
    assertEquals(code, 2);
    assertStringIncludes(stderr, "it must export a ToolRegistry");
  });
});

describe("a document", () => {
  it("may be OpenAPI in YAML, with the API elsewhere", async () => {
    const asked: string[] = [];
    const api: Served = await serve((request) => {
      asked.push(`${new URL(request.url).pathname} ${request.headers.get("authorization")}`);
      return Response.json({ name: "Rex" });
    });
    const file = await files.write("pets.yaml", PETS);
    const { code, stdout } = await plue([
      ...["call", "-f", file, "--base-url", api.url, "--header", "authorization: Bearer s"],
      ...["api:getPet", "--id", "7"],
    ]);
    await api.stop();
    assertEquals([code, JSON.parse(stdout)], [0, { name: "Rex" }]);
    assertEquals(asked, ["/pets/7 Bearer s"]);
  });

  it("may come from a URL, where its API is as well", async () => {
    const api = await serve((request) =>
      request.url.endsWith("/openapi.yaml") ? new Response(PETS) : Response.json({ name: "Tom" })
    );
    const words = ["call", "-f", `${api.url}/openapi.yaml`, "api:getPet", "--id", "8"];
    const { stdout } = await plue(words);
    await api.stop();
    assertEquals(JSON.parse(stdout), { name: "Tom" });
  });

  it("may come from standard input", async () => {
    const { stdout } = await plue(["list", "-", "--json"], { stdin: PETS });
    assertEquals(JSON.parse(stdout).tools[0].id, "api:getPet");
  });

  for (
    const [name, text, said] of [
      ["wrong.json", "{", "as JSON"],
      ["wrong.yaml", "a: [", "as YAML"],
      ["other.json", '{"a": 1}', 'other.json": it is neither an OpenAPI document nor'],
      ["old.json", '{"swagger": "2.0"}', "it is Swagger 2.0: convert it to OpenAPI 3 first"],
    ] as const
  ) {
    it(`is rejected if it is ${name}`, async () => {
      const file = await files.write(name, text);
      const { code, stderr } = await plue(["list", file]);
      assertEquals(code, 2);
      assertStringIncludes(stderr, said);
    });
  }
});

describe("a URL", () => {
  for (
    const [source, said] of [
      [
        "https://ann:hunter2@127.0.0.1/api.json?key=s3cret",
        'go into --header "authorization: Basic',
      ],
      ["http://ann:hunter2@127.0.0.1/mcp", 'go into --header "authorization: Basic'],
      ["plue:http://127.0.0.1:1/?key=s3cret", "the address of a plue service has no query"],
    ] as const
  ) {
    it(`is rejected without its credentials in the message: ${source}`, async () => {
      const { code, stderr } = await plue(["list", source]);
      assertEquals([code, stderr.match(/ann:|hunter2|s3cret/)], [2, null]);
      assertStringIncludes(stderr, said);
    });
  }

  it("that cannot be read is named without its query, with the reason", async () => {
    const api = await serve(() => new Response("no", { status: 403 }));
    const refused = await plue(["list", `${api.url}/api.json?key=s3cret`]);
    await api.stop();
    assertEquals(refused.stderr, `Cannot read ${api.url}/api.json: it answered 403\n`);
    const gone = await plue(["list", `${api.url}/api.json?key=s3cret`]);
    assertEquals([gone.code, gone.stderr.includes("s3cret")], [2, false]);
    assertMatch(gone.stderr, /^Cannot reach http:\S+\/api\.json: .*(?:refused|ECONNREFUSED)/i);
    assertMatch(
      (await plue(["list", api.url])).stderr,
      /^Cannot reach .*(?:refused|ECONNREFUSED)/i,
    );
  });

  it("with a query is not asked for a service's tools", async () => {
    const asked: string[] = [];
    const other = await serve((request) => {
      asked.push(new URL(request.url).pathname);
      return new Response("no", { status: 404 });
    });
    const { code } = await plue(["list", `${other.url}/some?key=s3cret`]);
    await other.stop();
    assertEquals([code, new Set(asked)], [2, new Set(["/some"])]);
  });
});

describe("a command", () => {
  it("that does not start an MCP server is named, without its arguments", async () => {
    const { code, stderr } = await plue(["list", "no-such-server --token s3cret"]);
    assertEquals(code, 2);
    assertMatch(
      stderr,
      /Cannot import the MCP server "no-such-server": it ended with exit code 127/,
    );
    assertEquals(stderr.includes("s3cret"), false);
  });
});

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
    assertEquals(JSON.parse(stdout).tools[0].id, "far:count");
  });

  it("shows MCP clients the bridge with --bridge, and HTTP clients that request it", async () => {
    await using served = await service([TOOLS, "--bridge"]);
    const ids = ["call_tool", "describe_tools", "search_tools"];
    const { stdout } = await plue(["list", `far=${served.url}/mcp`, "--json"]);
    const listed = JSON.parse(stdout).tools.map(({ id }: { id: string }) => id);
    assertEquals(listed, ids.map((id) => `far:${id}`));
    const { tools } = await (await fetch(`${served.url}/tools?bridge=1`)).json();
    assertEquals(tools.map(({ id }: { id: string }) => id).toSorted(), ids);
    const response = await fetch(`${served.url}/tools/call_tool/execute?bridge=1`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ arguments: { name: "search", arguments: { query: "hills" } } }),
    });
    assertEquals((await response.json()).content, { query: "hills" });
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
    const other = await serve(() => new Response());
    const { port } = new URL(other.url);
    const { code, stderr } = await plue(["serve", TOOLS, "--no-watch"], { env: { PORT: port } });
    await other.stop();
    assertEquals([code, stderr], [
      2,
      `Cannot serve on 127.0.0.1, port ${port}: the port is in use; choose another one with ` +
      "--port or PORT\n",
    ]);
  });

  it("serves what the flags select, within what the module lets anyone have", async () => {
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
      export const gated = {
        name: "gated", description: "Waits.", isAvailable: () => existsSync(${
        JSON.stringify(gate)
      }),
      };`,
    );
    await using served = await service([module]);
    const registry = new ToolRegistry();
    await using _client = await importMcpServer(`${served.url}/mcp`, {
      namespace: "far",
      registry,
    });
    const added = new Promise<string>((resolve) => {
      registry.subscribe(({ type, tool }) => type === "added" && resolve(tool.id));
    });
    const events = await fetch(`${served.url}/events`);
    await files.write("gate", "");
    assertEquals(await added, "far:gated");
    let told = "";
    for await (const part of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      if ((told += part).includes("\ndata: ")) break;
    }
    assertStringIncludes(told, 'data: {"type":"added","id":"gated"}');
  });

  it("gives descriptions for who reads them, also as a source", async () => {
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
    const wrong = await plue(["show", "read", "-f", module, "--locale", "pt BR"]);
    assertEquals(wrong.code, 2);
    assertStringIncludes(wrong.stderr, "It must be 1 to 128 letters");
  });

  it("rolls back what an earlier run left open, before it serves what needs transactions", async () => {
    const define = (name: string, recover: string): Promise<string> =>
      files.write(
        name,
        `import { ToolRegistry } from ${MOD};
        const tool = { name: "write", description: "Writes.", requiresTransaction: true };
        export const registry = new ToolRegistry({ tools: [tool] });
        const none = () => {};
        export const transactions = { begin: none, commit: none, rollback: none, ${recover} };`,
      );
    const controller = new AbortController();
    const served = await plue(
      ["serve", await define("undone.mjs", "recover: () => 2"), "--port", "0", "--no-watch"],
      { controller, heard: (text) => void (text.includes("mcpServers") && controller.abort()) },
    );
    assertEquals([served.code, served.stderr], [
      0,
      "Rolled back 2 transactions of an earlier run\n",
    ]);
    const stuck = await define("stuck.mjs", 'recover() { throw new Error("Cannot roll back") }');
    const refused = await plue(["serve", stuck, "--port", "0", "--no-watch"]);
    assertEquals([refused.code, refused.stdout, refused.stderr], [1, "", "Cannot roll back\n"]);
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

  it("asks here the questions of its tools, including tasks", async () => {
    const asking = await files.write(
      `remote.mjs`,
      `import { ToolRegistry } from ${MOD};
      const define = (name, more) => ({ name, description: "A tool of this test.", ...more });
      const ask = async (_, { ask, progress }) => {
        progress(1, 2, "looked");
        const { action } = await ask("plue", { kind: "approval", message: "Really?" });
        return "it was: " + action;
      };
      export const registry = new ToolRegistry({ tools: [
        define("approved", { requiresApproval: true, execute: () => "ran" }),
        define("asks", { execute: ask }),
        define("task", { execution: "task", execute: ask }),
      ] });
      export const dispatch = { approve: "ask" };`,
    );
    await using served = await service([asking]);
    const call = async (...words: readonly string[]): Promise<readonly [number, string]> => {
      const { code, stdout } = await plue(["call", "-f", served.url, ...words]);
      return [code, stdout];
    };
    assertEquals(await call("--yes", "approved"), [0, "ran\n"]);
    assertEquals(await call("--yes", "asks"), [0, "it was: accept\n"]);
    assertEquals(await call("--yes", "task"), [0, "it was: accept\n"]);
    for (const name of ["approved", "asks", "task"]) {
      const { code, stderr } = await plue(["call", "-f", served.url, name]);
      assertEquals(code, 22, stderr);
      assertStringIncludes(stderr, "it asks a question, and its caller cannot be asked");
      assertStringIncludes(stderr, "Call it on a terminal, where you are asked");
    }
  });

  it("fails as it fails there", async () => {
    await using served = await service([TOOLS]);
    const { code, stderr } = await plue(["call", "-f", served.url, "fail"]);
    assertEquals(code, 20);
    assertStringIncludes(stderr, "The disk is full");
  });

  it("receives the abort of a call", async () => {
    await using served = await service([TOOLS]);
    const controller = new AbortController();
    const { code } = await plue(["call", "-f", served.url, "wait"], {
      controller,
      heard: (text) => {
        if (text.includes("waiting")) controller.abort();
      },
    });
    assertEquals(code, 130);
  });

  describe("that asks", () => {
    const schema = { type: "object", properties: { seats: { type: "integer" } } };
    const text = `import { ToolRegistry } from ${MOD};
      let begun = 0;
      const tool = (name, more) => ({ name, description: "A tool of this test.", ...more });
      const execute = async (_, { ask, step, progress }) => {
        progress(1, 2, "looked");
        await step("begin", () => void begun++);
        const { content } = await ask("form", { message: "How many?", schema: ${
      JSON.stringify(schema)
    } });
        return { begun, ...content };
      };
      const write = { requiresApproval: true, requiresTransaction: true, execute: () => "written" };
      export const registry = new ToolRegistry({
        tools: [
          tool("book", { execute }),
          tool("cook", { execute, execution: "task" }),
          tool("write", write),
        ],
      });
      const none = () => {};
      export const transactions = { begin: () => ({ id: "1" }), commit: none, rollback: none };
      export const dispatch = { approve: "ask" };`;
    let count = 0;
    const asking = async (): Promise<Service> =>
      await service([await files.write(`asking${count++}.mjs`, text)]);

    for (const name of ["book", "cook"]) {
      it(`is answered by who calls ${name}`, async () => {
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
        const answers = {
          [question?.key ?? ""]: { action: "accept", content: { seats: 4 } },
        } as const;
        const result = await dispatcher.resume(waiting.ticket, answers);
        assertEquals(result.ok && result.content, { begun: 1, seats: 4 });
      });
    }

    it("cancels a task with a question that cannot be asked here", async () => {
      const module = await files.write(`asking${count++}.mjs`, text);
      await using served = await service([module], { PLUE_TOKEN: "sesame-sesame-sesame" });
      const authorization = "Bearer sesame-sesame-sesame";
      const header = `authorization: ${authorization}`;
      const { code } = await plue(["call", "-f", served.url, "--header", header, "cook"]);
      assertEquals(code, EXIT_CODES.input_unavailable);
      const response = await fetch(`${served.url}/calls`, { headers: { authorization } });
      assertMatch(await response.text(), /"status":"cancelled"/);
    });

    it("is approved by --yes, and has its own transactions", async () => {
      await using served = await asking();
      const { stdout, stderr } = await plue(["call", "-f", served.url, "--yes", "write"]);
      assertEquals([stdout, stderr], ["written\n", ""]);
      assertEquals(
        (await plue(["call", "-f", served.url, "write"])).code,
        EXIT_CODES.input_unavailable,
      );
    });
  });

  it("explains why it does not show a tool", async () => {
    await using served = await service([TOOLS]);
    const { stdout } = await plue(["explain", "-f", served.url, "launch"]);
    assertStringIncludes(stdout, "risk high is above the limit medium");
  });

  it("requires its token, which no message shows", async () => {
    const token = "sesame-sesame-sesame";
    await using served = await service([TOOLS], { PLUE_TOKEN: token });
    const refused = await plue(["list", served.url]);
    assertEquals(refused.code, 2);
    assertStringIncludes(refused.stderr, 'give a token with --header "authorization: …"');
    const header = `authorization: Bearer ${token}`;
    const { code, stdout } = await plue(["call", "-f", served.url, "--header", header, "fail"]);
    assertEquals([code, stdout.includes(token)], [20, false]);
  });

  it("is not taken for one if something else answers", async () => {
    const other = await serve(() => new Response("hello"));
    const { code, stderr } = await plue(["list", `plue:${other.url}`]);
    await other.stop();
    assertEquals(code, 2);
    assertStringIncludes(stderr, "the server there is not a plue service");
  });
});
