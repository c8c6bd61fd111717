import { describe, it } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { memoryCallStore } from "@plue/tools/calls";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { taskQueue } from "@plue/tools/queue";
import { ToolDispatcher } from "@plue/tools";
import { BASE, execute, sampleRegistry } from "./support.ts";

/** The `accept` header of Prometheus 3. */
const PROMETHEUS = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
  "application/openmetrics-text;version=0.0.1;q=0.5," +
  "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

async function called(options: ToolHandlerOptions = {}) {
  const app = createToolHandler(sampleRegistry(), {
    openExecution: true,
    openExplain: true,
    ...options,
  });
  const run = (text: unknown) => execute(app, "echo", { arguments: { text } });
  await run("a");
  await run("b");
  await run(5);
  await execute(app, "nope", {});
  return async (accept?: string) =>
    await app.request(`${BASE}/metrics`, accept === undefined ? {} : { headers: { accept } });
}

describe("GET /metrics", () => {
  it("returns JSON by default", async () => {
    const ask = await called();
    for (const accept of [undefined, "*/*", "application/json", "text/html,*/*;q=0.8"]) {
      assertEquals((await ask(accept)).headers.get("content-type"), "application/json");
    }
  });

  it("is text for Prometheus", async () => {
    const response = await (await called())(PROMETHEUS);
    assertEquals(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    const lines = (await response.text()).split("\n");
    for (
      const line of [
        "# TYPE plue_tool_calls_total counter",
        'plue_tool_calls_total{tool="echo"} 3',
        'plue_tool_failures_total{tool="echo",code="invalid_arguments"} 1',
        'plue_tool_in_flight{tool="echo"} 0',
        "# TYPE plue_tool_duration_seconds summary",
        'plue_tool_duration_seconds_count{tool="echo"} 3',
        "plue_calls_queued 0",
        "plue_calls_unknown_tool_total 1",
      ]
    ) assert(lines.includes(line), line);
    assertMatch(
      lines.join("\n"),
      /plue_tool_duration_seconds\{tool="echo",quantile="0.99"\} [\d.e-]+\n/,
    );
  });

  it("writes the samples of each metric together, after one description", async () => {
    const text = await (await (await called())(PROMETHEUS)).text();
    const described = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    assertEquals(new Set(described).size, described.length);
    // Every sample is below the description of its metric.
    let family = "";
    for (const line of text.trimEnd().split("\n")) {
      assertMatch(line, /^(# (HELP|TYPE) \S+ .+|[a-z_]+(\{[^{}]*\})? -?[\d.e+-]+)$/);
      family = /^# TYPE (\S+) /.exec(line)?.[1]?.replace(/_total$/, "") ?? family;
      assert(line.startsWith("#") || line.startsWith(family), line);
    }
  });

  /**
   * One dispatcher, read by its host, by a caller with fewer tools, and by a caller with `explain`.
   */
  async function metricsFor(accept: string) {
    const app = createToolHandler(sampleRegistry(), {
      authorize: (request) => {
        const who = request.headers.get("x-who");
        return who === "owner" ? { role: "control" } : { explain: who === "operator" };
      },
    });
    const as = (who: string) => ({ "x-who": who });
    const run = (id: string, who: string) => execute(app, id, { arguments: {} }, as(who));
    await run("task:approve", "owner");
    await run("file-write", "guest");
    await run("echo", "guest");
    await run("nope", "guest");
    return async (who: string) =>
      await (await app.request(`${BASE}/metrics`, { headers: { accept, ...as(who) } })).text();
  }

  it("sums over exactly the caller's tools", async () => {
    const ask = await metricsFor("application/json");
    const figures = async (who: string): Promise<unknown[]> => {
      const { calls, failed, inFlight, queued, unknownTool, tools } = JSON.parse(await ask(who));
      return [calls, failed, inFlight, queued, unknownTool, tools.length];
    };
    assertEquals(await figures("owner"), [3, 1, 0, undefined, undefined, 3]);
    assertEquals(await figures("guest"), [2, 1, 0, undefined, undefined, 2]);
    assertEquals(await figures("operator"), [2, 1, 0, 0, 1, 2]);
  });

  it("shows the queue of tasks to callers with access to explanations, without ids", async () => {
    const registry = sampleRegistry();
    const dispatcher = new ToolDispatcher(registry);
    const memory = memoryCallStore();
    let reads = 0;
    let isAway = false;
    const errors: unknown[] = [];
    const tasks = taskQueue({
      store: {
        ...memory,
        due: (...query) =>
          isAway ? Promise.reject(new Error("Away")) : (reads++, memory.due(...query)),
      },
    });
    const task = await tasks.enqueue(dispatcher, { name: "echo", arguments: { text: "a" } });
    assert("id" in task);
    const serve = () =>
      createToolHandler(registry, {
        authorize: (request) => ({ explain: request.headers.get("x-who") === "operator" }),
        ...{ tasks, dispatcher, onError: (error: unknown) => errors.push(error) },
      });
    const app = serve();
    const ask = async (who: string, accept: string, own = app) =>
      await (await own.request(`${BASE}/metrics`, { headers: { accept, "x-who": who } })).text();
    for (const accept of ["application/json", "text/plain"]) {
      assert(!/queue|plue_tasks/.test(await ask("guest", accept)));
    }
    assertEquals(reads, 0);
    const { queue } = JSON.parse(await ask("operator", "application/json"));
    assertEquals([queue.waiting, queue.running, queue.dead, queue.hasMore], [1, [], 0, false]);
    const text = await ask("operator", "text/plain");
    assertStringIncludes(text, "plue_tasks_waiting 1\n");
    assertStringIncludes(text, "# TYPE plue_tasks_dead gauge\nplue_tasks_dead 0\n");
    assertEquals(text.includes(task.id), false);
    // One page of tasks, the empty next page, and the dead tasks are read once for both requests.
    assertEquals(reads, 3);
    isAway = true;
    const { queue: none, calls } = JSON.parse(await ask("operator", "application/json", serve()));
    assertEquals([none, calls, errors.length], [undefined, 0, 1]);
  });

  it("shows no hidden tools in the text either", async () => {
    const ask = await metricsFor("text/plain");
    assertStringIncludes(await ask("owner"), 'plue_tool_calls_total{tool="task:approve"} 1');
    for (const [who, totals] of [["owner", false], ["guest", false], ["operator", true]] as const) {
      const text = await ask(who);
      assertEquals(text.includes("approve"), who === "owner");
      assertEquals(text.includes("plue_calls_unknown_tool_total 1"), totals);
      assertEquals(text.includes("plue_calls_queued 0"), totals);
    }
  });
});
