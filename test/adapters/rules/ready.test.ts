import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, systemClock, type ToolDefinition } from "@plue/tools";
import { memoryCallStore } from "@plue/tools/calls";
import { viewOf } from "@plue/tools/finding";
import {
  amountAtMost,
  explainCall,
  neverAfter,
  noTrifecta,
  onlyAfter,
  pathWithin,
  readRules,
  type Rule,
  rules,
  type RulesOptions,
} from "@plue/tools/rules";
import { importTools } from "@plue/tools/formats";
import { toolPins } from "@plue/tools/pins";
import { messageOf, PAY, worldOf } from "./support.ts";

const tool = (name: string, rest: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: `Does ${name}.`,
  parameters: { type: "object", properties: { path: {}, paths: {} } },
  execute: () => "done",
  ...rest,
} as ToolDefinition);

const PAGE = tool("page", { labels: { produces: ["untrusted"] } });
const FILES = tool("files", { labels: { reads: ["private"] } });
const MAIL = tool("mail", { labels: { sends: true } });
const flow = (options: RulesOptions = {}, tools = [PAGE, FILES, MAIL], list = [noTrifecta()]) =>
  worldOf(list, tools, {}, options);

describe("amountAtMost()", () => {
  const rule = amountAtMost(100, { tool: "bank:*", argument: "/euros" });

  it("allows numbers up to its limit, and requires approval above it", async () => {
    const { call } = worldOf([rule]);
    for (const euros of [0, 0.01, 100]) assertEquals(await call("bank:pay", { euros }), "paid");
    for (const euros of [100.01, -1, 1e300]) {
      assertEquals(await call("bank:pay", { euros }), "approval_required");
    }
  });

  it("requires approval for values that are not numbers, and for a missing argument", async () => {
    const { call } = worldOf([rule]);
    for (const euros of ["5", null, [5], { n: 5 }, true]) {
      assertEquals(await call("bank:pay", { euros }), "approval_required");
    }
    assertEquals(await call("bank:pay", {}), "approval_required");
    assertEquals(await call("bank:pay", '{"__proto__": {"euros": 5}}'), "approval_required");
  });

  it("requires approval for NaN, which the schema of a library may return", async () => {
    const standard = {
      "~standard": {
        ...{ version: 1, vendor: "test" },
        validate: () => ({ value: { euros: NaN } }),
        jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
      },
    };
    const { call } = worldOf([rule], [{ ...PAY, parameters: standard } as never]);
    assertEquals(await call("bank:pay", { euros: 1 }), "approval_required");
  });

  it("denies instead of requiring approval with `else`", async () => {
    const strict = amountAtMost(1, { tool: "bank:pay", argument: "/euros", else: "deny" });
    assertEquals(await worldOf([strict]).call("bank:pay", { euros: 2 }), "denied");
  });
});

describe("pathWithin()", () => {
  const rule = pathWithin(["/srv/data", "/tmp"], { tool: "read", argument: "/path" });
  const { call } = worldOf([rule], [tool("read")]);

  it("allows its folders and paths in them", async () => {
    for (const path of ["/srv/data", "/srv/data/", "/srv//data/./a b.txt", "/tmp/é", "/tmp/..a"]) {
      assertEquals(await call("read", { path }), "done");
    }
    assertEquals(await call("read", { path: ["/tmp/a", "/srv/data/b"] }), "done");
  });

  it("denies other paths in every form", async () => {
    for (
      const path of [
        ...["/srv/data-old/a", "/srv", "/", "", "srv/data/a", "/srv/data/../../etc", "/SRV/data"],
        ...["/tmp/../etc", "/tmp/a/..", "/tmp/ ..", "/tmp\\..\\etc", "/tmp/%2e%2e/etc"],
        ...[
          "/tmp/%2Fetc",
          "/tmp/a\u0000b",
          "/tmp/\u202e",
          "/tmp/.\u200b./etc",
          "/tmp/\uff0e\uff0e/x",
        ],
        ...["/tmp/\u2025/etc", "\uff0ftmp/a", "/tmp/a\n", 5, null, {}, [], ["/tmp/a", "/etc"]],
        ...[[["/tmp/a"], "/etc"], "/tmp/x\uff0f..\uff0f..\uff0fetc"],
        ...["/tmp/%252e%252e/etc", "/tmp/%u002e./etc", "/tmp/..;/etc", "/tmp/..?/etc"],
      ]
    ) assertEquals(await call("read", { path }), "denied", JSON.stringify(path));
    assertEquals(await call("read", {}), "denied");
  });
});

describe("onlyAfter() and neverAfter()", () => {
  it("allow a tool after a success, and only in the same session", async () => {
    let isFailing = true;
    const execute = () => isFailing ? Promise.reject(new Error("not checked")) : "checked";
    const check = tool("check", { execute });
    const { call } = worldOf([onlyAfter("check", { tool: "bank:*" })], [PAY, check]);
    assertEquals(await call("bank:pay"), "denied");
    assertEquals(await call("check"), "threw");
    assertEquals(await call("bank:pay"), "denied");
    isFailing = false;
    await call("check");
    assertEquals(await call("bank:pay"), "paid");
    assertEquals(await call("bank:pay", {}, "other"), "denied");
    assertEquals(await call("bank:pay", {}, "s", "bob"), "denied");
  });

  it("deny a tool after another one, even if that failed", async () => {
    const broken = tool("broken", { execute: () => Promise.reject(new Error("broken")) });
    const { call, dispatcher } = worldOf([neverAfter("bro*", { tool: "bank:pay" })], [PAY, broken]);
    assertEquals(await call("bank:pay"), "paid");
    await call("broken");
    const context = { sessionId: "s", principal: "ann" };
    const result = await dispatcher.dispatch({ name: "bank:pay" }, context);
    assertMatch(messageOf(result), /may not run in its session after call "call_.*" of "broken"/);
  });

  it("record a tool that is called through a view", async () => {
    const view = viewOf(defineTool(tool("check")), { name: "verify" });
    const { call } = worldOf([neverAfter("check", { tool: "bank:pay" })], [PAY, view as never]);
    await call("verify");
    assertEquals(await call("bank:pay"), "denied");
  });

  it("keep the result of a call whose success cannot be stored", async () => {
    const update = () => Promise.reject(new Error("away"));
    const store = { ...memoryCallStore(), update };
    const list = [onlyAfter("check", { tool: "bank:pay" })];
    const { call, reports } = worldOf(list, [PAY, tool("check")], {}, { store });
    assertEquals([await call("check"), reports[0]?.phase], ["done", "rule"]);
    assertEquals(await call("bank:pay"), "denied");
  });

  it("do not record a call that was not approved", async () => {
    const { call } = worldOf([neverAfter("check", { tool: "bank:pay" })], [
      PAY,
      tool("check", { requiresApproval: true }),
    ], { approve: () => false });
    assertEquals(await call("check"), "denied");
    assertEquals(await call("bank:pay"), "paid");
  });
});

describe("noTrifecta()", () => {
  for (
    const [words, list] of [
      ["", [noTrifecta()]],
      ["as data ", readRules([{ tool: "*", noTrifecta: true, else: "ask" }])],
    ] as const
  ) {
    it(`${words}requires approval once a session has private and untrusted data`, async () => {
      const { call } = flow({}, [PAGE, FILES, MAIL], [...list]);
      for (const name of ["mail", "page", "mail", "files"]) assertEquals(await call(name), "done");
      assertEquals(await call("mail"), "approval_required");
    });
  }

  it("keeps the labels of a session in its store", async () => {
    const store = memoryCallStore();
    const { call } = flow({ store });
    for (const name of ["page", "files"]) await call(name);
    assertEquals(await flow({ store }).call("mail"), "approval_required");
    assertEquals(await call("mail", {}, "other"), "done");
  });

  it("retains full lists of labels while calls add them", async () => {
    let time = Date.now();
    const clock = { ...systemClock, timestamp: () => time };
    const options = { store: memoryCallStore({ clock }), sessionTtlMs: 10_000 };
    const page = tool("page", { labels: { produces: ["untrusted"], reads: ["private"] } });
    const { call } = worldOf([noTrifecta()], [page, MAIL], { clock }, options);
    for (let count = 0; count < 8; count++) await call("page");
    time += 9_000;
    await call("page");
    time += 9_000;
    assertEquals(await call("mail"), "approval_required");
    time += 2_000;
    assertEquals(await call("mail"), "done");
  });

  it("names the calls that brought the data", async () => {
    const { dispatcher } = flow();
    const context = { sessionId: "s" };
    await dispatcher.dispatch({ name: "page", callId: "c1" }, context);
    await dispatcher.dispatch({ name: "page", callId: "c2" }, context);
    await dispatcher.dispatch({ name: "files", callId: "c3" }, context);
    const { rules: [verdict] } = await explainCall(dispatcher, { name: "mail" }, context);
    assertEquals(
      verdict?.reason,
      "It can send data out of a session that has read private data by " +
        'call "c3" of "files", and untrusted data by call "c1" of "page"',
    );
  });

  it("requires approval for a tool that reads private data and sends it", async () => {
    const forward = tool("forward", { labels: { reads: ["private"], sends: true } });
    const { call } = flow({}, [PAGE, forward]);
    assertEquals(await call("forward"), "done");
    await call("page");
    assertEquals(await call("forward"), "approval_required");
  });

  it("adds the labels of a tool that has failed, but not of a tool that did not run", async () => {
    const fails = { ...PAGE, execute: () => Promise.reject(new Error("x")) };
    const first = flow({}, [fails, FILES, MAIL]);
    await first.call("page");
    await first.call("files");
    assertEquals(await first.call("mail"), "approval_required");
    const second = worldOf([noTrifecta()], [{ ...PAGE, requiresApproval: true }, FILES, MAIL], {
      approve: () => false,
    });
    assertEquals(await second.call("page"), "denied");
    await second.call("files");
    assertEquals(await second.call("mail"), "done");
  });

  it("labels the session before a tool has returned", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const slow = tool("slow", {
      labels: { produces: ["untrusted"] },
      async execute() {
        started.resolve();
        await promise;
        return "page";
      },
    });
    const { call } = flow({}, [slow, FILES, MAIL]);
    await call("files");
    const page = call("slow");
    await started.promise;
    assertEquals(await call("mail"), "approval_required");
    resolve();
    await page;
  });

  it("treats imported tools as untrusted and as sending, unless their pinned annotations differ", async () => {
    const open = { name: "open", description: "Gets.", inputSchema: { type: "object" } };
    const closed = { ...open, name: "closed", annotations: { openWorldHint: false } };
    const imported = () => importTools("mcp", { tools: [open, closed] }, { execute: () => "page" });
    for (const [isPinned, outcome] of [[true, "page"], [false, "approval_required"]] as const) {
      const { tools } = isPinned ? await toolPins().check(imported(), "key") : imported();
      // The operator's labels replace only the fields that they name.
      const labels = { open: { reads: ["private"] } };
      for (const options of [{}, { labels }]) {
        const { call } = flow(options, [...tools as never[], FILES]);
        await call("open");
        await call("files");
        assertEquals(await call("open"), "approval_required");
        assertEquals(await call("closed"), outcome);
      }
    }
  });

  it("follows the labels of the operator", async () => {
    const labels = { "pa*": { produces: ["untrusted"] }, "*": { sends: true, reads: ["private"] } };
    const { call } = flow({ labels }, [tool("page"), tool("any")]);
    assertEquals(await call("any"), "done");
    await call("page");
    assertEquals(await call("any"), "approval_required");
  });

  it("has the same labels for a view", async () => {
    const view = viewOf(defineTool(PAGE), { name: "web" });
    const { call } = flow({}, [view as never, FILES, MAIL]);
    await call("web");
    await call("files");
    assertEquals(await call("mail"), "approval_required");
  });

  it("retains a label of eight calls, although one did not run", async () => {
    let isApproved = true;
    const page = { ...PAGE, requiresApproval: true };
    const { call } = worldOf([noTrifecta()], [page, FILES, MAIL], { approve: () => isApproved });
    for (let count = 0; count < 9; count++) await call("page");
    isApproved = false;
    await call("page");
    await call("files");
    assertEquals(await call("mail"), "denied");
  });
});

describe("the ready rules", () => {
  it("reject invalid options", () => {
    const argument = "/a";
    for (
      const [make, message] of [
        [() => amountAtMost(1, { tool: "", argument }), '"/tool" must be an id'],
        [() => amountAtMost(1, { tool: [], argument }), '"/tool" must be an id'],
        [() => amountAtMost(1, { tool: {}, argument }), '"/tool" must be an id'],
        [() => amountAtMost(1, { tool: { maxRisk: "huge" } as never, argument }), "maxRisk"],
        [() => amountAtMost(1, { tool: "*", argument: "a" }), "must be a JSON Pointer"],
        [() => pathWithin("data", { tool: "*", argument }), "must be an absolute path"],
        [() => pathWithin("/a/../b", { tool: "*", argument }), "must be an absolute path"],
        [() => noTrifecta({ else: "allow" as never }), '"/else"'],
        [() => onlyAfter("", { tool: "*" }), "the earlier tool must be an id"],
        [() => rules([neverAfter("a", { tool: "b" }), neverAfter("a", { tool: "b" })]), "another"],
      ] as readonly [() => Rule, string][]
    ) assertThrows(make, Error, message);
  });

  it("select tools by criteria", async () => {
    const write = tool("write", { tags: ["write"] });
    const { call } = worldOf([
      pathWithin("/tmp", { tool: { tagsAny: ["write"] }, argument: "/path" }),
    ], [write, tool("read")]);
    assertEquals(await call("write", { path: "/etc" }), "denied");
    assertEquals(await call("read", { path: "/etc" }), "done");
  });
});
