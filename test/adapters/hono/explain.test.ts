import { assertEquals, assertStringIncludes } from "@std/assert";
import { buildToolset, ToolRegistry } from "@plue/tools";
import { createToolHandler } from "@plue/tools/hono";
import { describe, it } from "bun:test";
import { BASE, handler, problemOf, sampleRegistry } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

interface Explanations {
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tools: readonly {
    readonly id: string;
    readonly selected: boolean;
    readonly available: boolean;
    readonly removedBy?: string;
    readonly steps?: unknown;
  }[];
}

type App = ReturnType<typeof handler>;

async function explain(app: App, query = "", headers = {}): Promise<Explanations> {
  const response = await app.request(`${BASE}/explain${query}`, { headers });
  assertEquals(response.status, 200);
  return await response.json() as Explanations;
}

/** The step that removed each tool, or `visible`. */
function verdicts({ tools }: Explanations): Record<string, string> {
  return Object.fromEntries(
    tools.map(({ id, available, removedBy }) => [id, available ? "seen" : removedBy ?? "?"]),
  );
}

const AUTHORIZE = {
  authorize: (request: Request) => {
    const name = request.headers.get("authorization") ?? "";
    if (name === "owner") return { role: "impl", maxRisk: "medium", explain: true } as const;
    return { maxRisk: "low" } as const;
  },
};
const OWNER = { authorization: "owner" };

describe("GET /explain", () => {
  it("explains for each tool whether the caller sees it, without the steps", async () => {
    const all = await explain(handler({ openExplain: true, selection: { maxRisk: "low" } }));
    assertEquals(verdicts(all), {
      "echo": "seen",
      "file-write": "risk",
      "plan": "seen",
      "rm": "risk",
      "secrets": "scopes",
      "task:approve": "role",
    });
    assertEquals([all.roles, all.scopes], [["control"], ["secrets:read"]]);
    assertEquals(all.tools.some((tool) => "steps" in tool), false);
  });

  it("explains only its own tools, without roles and scopes, to a caller without explain", async () => {
    for (const app of [handler({ selection: { maxRisk: "low" } }), handler(AUTHORIZE)]) {
      const own = await explain(app);
      assertEquals(verdicts(own), { echo: "seen", plan: "seen" });
      assertEquals([own.roles, own.scopes], [[], []]);
      assertEquals(verdicts(await explain(app, "?role=control&maxRisk=critical")), {
        echo: "seen",
        plan: "seen",
      });
    }
  });

  it("takes the filters of a listing", async () => {
    const app = handler({ openExplain: true });
    assertEquals(verdicts(await explain(app, "?maxRisk=safe"))["file-write"], "risk");
    assertEquals(verdicts(await explain(app, "?hasTerminal=false"))["rm"], "context");
    assertEquals(verdicts(await explain(app, "?tagsAny=read"))["plan"], "tags");
  });

  it("explains what a caller with another role or other scopes would see", async () => {
    const open = handler({ openExplain: true });
    assertEquals(verdicts(await explain(open, "?role=control"))["task:approve"], "seen");
    assertEquals(verdicts(await explain(open, "?role=impl"))["task:approve"], "role");
    assertEquals(verdicts(await explain(open, "?scopes=secrets:read"))["secrets"], "seen");
    const closed = handler(AUTHORIZE);
    assertEquals(verdicts(await explain(closed, "", OWNER))["task:approve"], "role");
    const other = verdicts(await explain(closed, "?role=control", OWNER));
    // The other fields of the caller stay unchanged.
    assertEquals([other["task:approve"], other["rm"]], ["seen", "risk"]);
    const scoped = verdicts(await explain(closed, "?scopes=secrets:read", OWNER));
    assertEquals([scoped["secrets"], scoped["task:approve"]], ["seen", "role"]);
  });

  it("explains the served tools only", async () => {
    const served = createToolHandler(
      buildToolset(sampleRegistry(), { maxRisk: "low", role: null }),
      { openExplain: true },
    );
    assertEquals(verdicts(await explain(served, "?role=control")), {
      echo: "seen",
      plan: "seen",
      secrets: "seen",
    });
  });

  it("names the tools that are unavailable now", async () => {
    const registry = new ToolRegistry({
      tools: [toolOf("absent", undefined, { isAvailable: () => false })],
    });
    const [absent] = (await explain(createToolHandler(registry))).tools;
    assertEquals([absent?.selected, absent?.available], [true, false]);
  });

  it("rejects queries that are not filters", async () => {
    for (const query of ["?q=x", "?limit=3", "?format=openai.chat", "?colour=red"]) {
      const problem = await problemOf(await handler().request(`${BASE}/explain${query}`));
      assertEquals(problem.code, "bad_request");
    }
  });
});

describe("GET /tools/:id/explain", () => {
  it("takes the same query, and hides what it hid", async () => {
    const open = handler({ openExplain: true });
    const seen = await open.request(`${BASE}/tools/task:approve/explain?role=control`);
    const { available, steps } = await seen.json() as {
      readonly available: boolean;
      readonly steps: readonly { readonly step: string; readonly passed: boolean }[];
    };
    assertEquals(available, true);
    assertEquals(steps.find(({ step }) => step === "role")?.passed, true);
    const hidden = await handler().request(`${BASE}/tools/task:approve/explain?role=control`);
    assertEquals(hidden.status, 404);
    const own = await handler().request(`${BASE}/tools/echo/explain?maxRisk=safe&tagsAny=no`);
    assertStringIncludes((await own.json() as { readonly reason: string }).reason, "tags");
  });
});
