// Names of tools in a `plue.json` that no tool has.

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { folder, plue, rejects } from "../support.ts";
import { gatewayIn } from "./serving.ts";

const files = folder();
const gateway = gatewayIn(files);

const TOOLS = {
  tools: ["read", "write"].map((name) => ({ name, inputSchema: { type: "object" } })),
};
const rule = (tool: unknown) => ({ tool, perSession: 1 });

async function check(settings: object, ...flags: readonly string[]) {
  await files.write("list.json", TOOLS);
  const path = await files.write("plue.json", settings);
  return await plue(["check", path, "--connect", ...flags]);
}

describe("the names of tools in a plue.json", () => {
  it("are reported with line and column if no tool has them", async () => {
    const settings = {
      sources: {
        docs: {
          ...{ from: "list.json", include: ["read", "reed"], exclude: ["wirte"] },
          ...{ risk: { raed: "low", "*": "low" }, views: [{ tool: "find", name: "found" }] },
        },
      },
      rules: [rule("docs:raed"), rule(["docs:*", "dosc:read"]), rule({ tagsAny: ["x"] })],
      selection: { allowIds: ["docs:read"], denyIds: ["docs:read", "docs:raed"] },
      tenants: { acme: { use: ["docs"], selection: { denyIds: ["reed"] } } },
      callers: { tokens: { ann: { token: "sesame-sesame-sesame", tenant: "acme" } } },
    };
    const { code, stdout, stderr } = await check(settings);
    assertEquals(stderr.replaceAll(/^warning: .*plue\.json:/gm, "").trim().split("\n"), [
      '1:58: The source has no tool "reed"; did you mean "read"?',
      '1:77: The source has no tool "wirte"; did you mean "write"?',
      '1:128: The source has no tool "find"',
      '1:94: The source has no tool "raed"; did you mean "read"?',
      '1:171: The rule has no effect: no tool fits "docs:raed"; did you mean "docs:read"?',
      '1:224: The rule has no effect: no tool fits "dosc:read"; did you mean "docs:read"?',
      "1:254: The rule has no effect: no tool fits these criteria",
      '1:357: No tool has the id "docs:raed"; did you mean "docs:read"?',
      '1:429: No tool has the id "reed"',
    ]);
    assertEquals(code, 0);
    assertMatch(stdout, /is valid: 1 source.*docs +1 +ready/s);
    assertEquals((await check(settings, "--strict")).code, 1);
  });

  it("are the names of the source, even if they are not valid names of tools", async () => {
    const ids = ["repos/get", "repos/list", "repos/lock", "repos/drop", undefined];
    const paths = ids.map((operationId, index) => [`/p${index}`, { get: { operationId } }]);
    const info = { title: "A", version: "1" };
    const document = { openapi: "3.1.0", info, paths: Object.fromEntries(paths) };
    await files.write("repos.json", document);
    const settings = (more: object) => ({
      sources: { api: { ...{ from: "repos.json", baseUrl: "https://example.com" }, ...more } },
      selection: { maxRisk: "high" },
    });
    await using served = await gateway(
      "repos-plue.json",
      settings({
        include: ["repos/get", "repos/list", "repos_lock", "GET /p4"],
        exclude: ["repos/list"],
        risk: { "repos/get": "critical", "repos_get": "low", "GET /p4": "safe" },
        views: [{ tool: "repos/lock", name: "lock" }, { tool: "repos_drop", name: "drop" }],
      }),
    );
    assertEquals(await served.tools(), ["api:get_p4", "api:lock"]);
    await served.printed(/no tool "repos_lock"; did you mean "repos\/lock"\?/);
    await served.printed(/no tool "repos_drop"/);
    await served.printed(/no tool "repos_get"; did you mean "repos\/get"\?/);
    const views = [{ tool: "repos/get", bind: {} }, { tool: "repos_list", name: "list" }];
    await files.write(
      "repos-plue.json",
      settings({ exclude: ["repos_lock", "repos/drop"], views }),
    );
    await served.printed(/Applied/);
    const all = ["api:get_p4", "api:list", "api:repos_get", "api:repos_list"];
    assertEquals(await served.tools(), all);
  });

  it("are not reported if tools, views or run_code have them", async () => {
    const settings = {
      sources: {
        docs: { from: "list.json", exclude: ["write"], views: [{ tool: "read", name: "look" }] },
      },
      rules: [rule(["docs:read", "docs:look"]), rule("*:l*")],
    };
    const { code, stderr } = await check(settings, "--strict");
    assertEquals([code, stderr], [0, ""]);
    const coded = { ...settings, code: true, rules: [rule("run_code")] };
    assertEquals((await check(coded)).stderr, "");
  });

  it("are reported when plue serves the file, and after each change of the file", async () => {
    await files.write("list.json", TOOLS);
    const settings = (tool: string) => ({
      sources: { docs: { from: "list.json" } },
      rules: [rule(tool)],
    });
    await using served = await gateway("served.json", settings("docs:raed"));
    await served.printed(/warning: \S+:1:\d+: The rule has no effect: no tool fits "docs:raed"/);
    await files.write("served.json", settings("docs:wirte"));
    await served.printed(/warning: \S+:1:\d+: The rule has no effect: no tool fits "docs:wirte"/);
  });

  it("of rules are reported only when all sources have answered", async () => {
    const sources = { down: { command: "false" } };
    const { code, stdout, stderr } = await check({ sources, rules: [rule("down:read")] });
    assertEquals(code, 1);
    assertMatch(stdout, /down +0 +Cannot/);
    assertEquals(stderr.includes("has no effect"), false);
  });

  it("are looked for with --connect only, which needs a plue.json", async () => {
    const path = await files.write("offline.json", '{"sources": {"docs": {"command": "false"}}}');
    const { code, stdout } = await plue(["check", path]);
    assertEquals(code, 0);
    assertStringIncludes(stdout, "add --connect");
    for (const unused of [["tools.mjs"], ["--to", "openai"]]) {
      await rejects(["check", path, ...unused], `has no effect with ${path}; leave it out`);
    }
    const wrong = ["check", await files.write("list.json", TOOLS), "--connect"];
    await rejects(wrong, "--connect has no effect without a plue.json");
  });
});
