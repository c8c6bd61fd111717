import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { createToolBridge } from "../../../src/finding/mod.ts";
import {
  dispatchResponse,
  type ExportNames,
  exportTools,
  listTargets,
  type TargetId,
} from "../../../src/formats/mod.ts";
import { sample } from "../../support/laws.ts";
import { type Fixture, FIXTURES } from "../formats/cases.ts";

const THINGS = ["invoice", "calendar", "photo", "recipe", "song", "map", "ticket", "book"];
const VERBS = ["find", "create", "delete", "share", "rename"];

const toolOf = (verb: string, thing: string) => ({
  namespace: thing,
  name: verb,
  description: `Can ${verb} one ${thing}.`,
  parameters: {
    type: "object",
    properties: { title: { type: "string" }, count: { type: "integer" } },
    required: ["title"],
    additionalProperties: false,
  },
  execute: (params: unknown) => ({ [verb]: params }),
} as const);

function registryOfAll(): ToolRegistry {
  return new ToolRegistry({
    tools: THINGS.flatMap((thing) => VERBS.map((verb) => toolOf(verb, thing))),
  });
}

/** A provider's response with a call. */
function responseWith(
  { targets, call, levels }: Fixture,
  names: ExportNames,
  toolId: string,
  args: unknown,
  id: string,
): unknown {
  const encoding = names.encodingOf(toolId);
  assert(encoding !== undefined, toolId);
  const { name, namespace, searches } = encoding;
  const [whole] = Object.values(levels);
  const made = call(name, args, id) as Record<string, unknown>;
  if (targets.includes("openai.responses")) {
    delete made["namespace"];
    if (namespace !== undefined) made["namespace"] = namespace;
    if (searches === true) {
      const search = { type: "tool_search_call", execution: "client", status: "completed" };
      return whole?.([{ ...search, id: `tsc_${id}`, call_id: id, arguments: args }]);
    }
  }
  return whole?.([made]);
}

/** The initial tools of the model, without the tools that a search loads. */
function shown(tools: unknown): string {
  return JSON.stringify(
    Array.isArray(tools)
      ? tools.filter((tool: { defer_loading?: true }) => tool.defer_loading !== true)
      : tools,
  );
}

const OWN = ["call_tool", "describe_tools", "search_tools"];
const TURNS = 50;
const PINNED = "map:find";

describe(`a conversation of ${TURNS} turns`, () => {
  for (const { id } of sample(listTargets())) {
    const fixture = FIXTURES.find(({ targets }) => targets.includes(id));

    for (const changes of [false, true]) {
      const while_ = changes ? "while tools come and go" : "over the same tools";
      it(`shows ${id} the same bytes ${while_}`, async () => {
        assert(fixture !== undefined);
        const registry = registryOfAll();
        const dispatcher = new ToolDispatcher(registry);
        let first: string | undefined;
        for (let turn = 0; turn < TURNS; turn++) {
          if (changes) {
            registry.tryRegisterTool({ name: `new_${turn}`, description: "Is new." });
            registry.unregisterTool(`new_${turn - 3}`);
          }
          // A server creates the bridge again for each request.
          const bridge = createToolBridge(registry.select(), { pinned: [PINNED] });
          const { tools, names, rejected } = exportTools(bridge, id);
          assertEquals(rejected, []);
          const bytes = changes ? shown(tools) : JSON.stringify(tools);
          assertEquals(bytes, first ??= bytes);
          await takeTurn(fixture, id, names, dispatcher.withToolset(bridge), turn);
        }
        assertEquals(dispatcher.metrics().failed, 0);
        assertEquals(dispatcher.metrics().calls, 2 * TURNS);
      });
    }
  }
});

/** Searches, and then calls the found tool in the form of the target. */
async function takeTurn(
  fixture: Fixture,
  target: TargetId,
  names: ExportNames,
  dispatcher: ToolDispatcher,
  turn: number,
): Promise<void> {
  const thing = THINGS[turn % THINGS.length] as string;
  const verb = VERBS[turn % VERBS.length] as string;
  const wanted = `${thing}:${verb}`;
  const ask = async (toolId: string, args: unknown): Promise<readonly [unknown, string]> => {
    const response = responseWith(fixture, names, toolId, args, `call_${turn}`);
    const { results, messages } = await dispatchResponse(target, response, { dispatcher, names });
    const [result] = results;
    assert(results.length === 1 && result?.ok === true, JSON.stringify(results));
    return [result.content, JSON.stringify(messages)];
  };
  const [found, answer] = await ask("search_tools", { query: `${verb} a ${thing}` });
  const [best = ""] = (found as { readonly tools: readonly string[] }).tools;
  assertEquals(best.slice(0, wanted.length), wanted);
  const args = { title: `${turn}`, count: turn };
  const loads = names.encodingOf("search_tools")?.searches === true;
  const loaded = loads ? names.encodingOf(wanted) : undefined;
  // The answer for the model has the tool under the name for the next call, unless it is pinned.
  assert(wanted === PINNED || answer.includes(loaded?.name ?? wanted), answer);
  const [done] = loaded === undefined
    ? await ask("call_tool", { name: wanted, arguments: args })
    : await ask(wanted, args);
  assertEquals(done, { [verb]: args });
}

describe("the export of a bridge", () => {
  const native = ["anthropic", "anthropic.strict", "openai.responses", "openai.responses.strict"];
  const bridge = createToolBridge(registryOfAll().select());

  for (const { id } of listTargets()) {
    it(`is ${native.includes(id) ? "its own search" : "three tools"} for ${id}`, () => {
      const { names } = exportTools(bridge, id);
      const search = names.encodings.find(({ searches }) => searches === true);
      assertEquals(search?.id, native.includes(id) ? "search_tools" : undefined);
      assertEquals(names.encodings.length, native.includes(id) ? 41 : 3);
    });
  }

  for (const id of native as readonly TargetId[]) {
    it(`is three tools for ${id} with native: false`, () => {
      const plain = createToolBridge(registryOfAll().select(), { native: false });
      const { encodings } = exportTools(plain, id).names;
      assertEquals(encodings.map(({ name }) => name), OWN);
      assertEquals(encodings.some(({ searches }) => searches), false);
    });

    for (const twin of ["search_tools", "call_tool"]) {
      it(`is three tools for ${id}, if a bridged tool is called ${twin}`, async () => {
        const registry = new ToolRegistry({
          tools: [{ name: twin, description: "Opens a toolbox.", execute: () => "box" }],
        });
        const toolset = createToolBridge(registry.select());
        assertEquals(exportTools(toolset, id).names.encodings.map(({ name }) => name), OWN);
        const call = { name: "call_tool", arguments: { name: twin } };
        const found = await new ToolDispatcher(toolset).dispatch(call);
        assertEquals(found.ok && found.content, "box");
      });
    }

    it(`reports for ${id} that a search does not load a listed tool`, () => {
      const { tools } = exportTools(bridge, id);
      assert(JSON.stringify(tools).includes("Tools that are listed already are not loaded again."));
    });
  }

  it("is made once for as long as the tools stay the same", () => {
    for (const id of ["anthropic", "openai.chat"] as const) {
      const first = exportTools(bridge, id).names;
      assert(exportTools(bridge, id).names === first);
    }
  });

  it("contains no hidden tools", () => {
    const tools = [toolOf("find", "book"), { ...toolOf("find", "secret"), risk: "high" as const }];
    const guests = createToolBridge(new ToolRegistry({ tools }).select({ maxRisk: "low" }));
    for (const { id } of listTargets()) {
      assertEquals(JSON.stringify(exportTools(guests, id)).includes("secret"), false);
    }
  });

  it("has the tools that are available now", () => {
    let isThere = true;
    const tool = { ...toolOf("find", "book"), isAvailable: () => isThere };
    const changing = createToolBridge(new ToolRegistry({ tools: [tool] }).select());
    const count = (): number => exportTools(changing, "anthropic").tools.length;
    assertEquals(count(), 2);
    isThere = false;
    assertEquals(count(), 1);
  });
});
