import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { HostTools, writeToolList } from "../../../src/adapters/native/host_tools.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import { fakeRegistry, fakeTool } from "../registry/fakes.ts";

describe("writeToolList()", () => {
  // "tools_obj.put(entry.key_ptr.*, tool_info)"
  it("is an object: each definition by the name that calls use", () => {
    const list = JSON.parse(writeToolList([fakeTool("a"), fakeTool("chain:status")]));
    assertEquals(Object.keys(list), ["a", "chain:status"]);
    for (const [name, definition] of Object.entries<{ name: string }>(list)) {
      assertEquals(definition.name, name);
    }
    assertEquals(writeToolList([]), "{}");
  });

  it("keeps the order of names, even of names that JavaScript would sort first", () => {
    const ids = ["-1", "10", "2", "__proto__", "a:1"];
    const text = writeToolList(ids.map((id) => fakeTool(id)));
    const places = ids.map((id) => text.indexOf(`${JSON.stringify(id)}:{"name":`));
    assertEquals(places.includes(-1), false);
    assertEquals(places, places.toSorted((a, b) => a - b));
    assertEquals(new Set(Object.keys(JSON.parse(text))), new Set(ids));
  });

  it("contains the data that a host needs to show and call a tool", () => {
    const tool = fakeTool("a", {
      title: "A",
      parameters: { type: "object", properties: { n: { type: "number" } } },
      returns: { type: "string" },
      risk: "high",
      tags: ["x"],
      requiresApproval: true,
      execute: () => "",
    });
    const { a: described } = JSON.parse(writeToolList([tool]));
    const { annotations, ...rest } = described;
    assertEquals(typeof annotations, "object");
    assertEquals(rest, {
      name: "a",
      title: "A",
      description: "The tool a.",
      parameters: { type: "object", properties: { n: { type: "number" } } },
      returns: { type: "string" },
      risk: "high",
      tags: ["x"],
      requiresApproval: true,
      idempotent: false,
      executable: true,
    });
  });

  it("does not list the roles and scopes of tools", () => {
    const text = writeToolList([
      fakeTool("a", { roles: ["secret-role"], scopes: ["secret-scope"] }),
    ]);
    assertEquals(text.includes("secret"), false);
  });
});

describe("the configurations of a host", () => {
  /** Two tools that require the setting "root", and a function that configures a new host. */
  function configured(config: { readonly [id: string]: unknown }) {
    const schema = { type: "object", required: ["root"] };
    const registry = fakeRegistry({
      tools: ["a", "b"].map((id) => fakeTool(id, { config: schema })),
      config: { a: { root: "/a" }, b: { root: "/b" } },
    });
    const dispatcher = new ToolDispatcher(registry);
    const open = () =>
      new HostTools(
        { registry, dispatcher },
        { config, selection: {} },
        () => {},
        () => () => {},
        () => 0,
      );
    return { registry, open, now: () => ["a", "b"].map((id) => registry.getConfig(id)) };
  }

  it("are restored when the host closes, for the tools that are still registered", () => {
    const { registry, open, now } = configured({ a: { root: "/new" }, b: { root: "/new" } });
    const host = open();
    assertEquals(now(), [{ root: "/new" }, { root: "/new" }]);
    registry.unregisterTool("b");
    host.close();
    assertEquals(now(), [{ root: "/a" }, undefined]);
  });

  it("are applied to all tools or to none", () => {
    const { open, now } = configured({ a: { root: "/new" }, b: {} });
    assertThrows(open, Error, 'Cannot use config_json: tool "b": its configuration is invalid');
    assertEquals(now(), [{ root: "/a" }, { root: "/b" }]);
  });
});
