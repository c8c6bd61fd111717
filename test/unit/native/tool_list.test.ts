import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { writeToolList } from "../../../src/adapters/native/tool_list.ts";
import { fakeTool } from "../registry/fakes.ts";

describe("writeToolList()", () => {
  it("is a list in the order given, by the names that calls use", () => {
    const list = JSON.parse(writeToolList([fakeTool("chain:status"), fakeTool("a")]));
    assertEquals(list.map(({ name }: { name: string }) => name), ["chain:status", "a"]);
    assertEquals(writeToolList([]), "[]");
  });

  it("says what a host needs to show a tool and to call it", () => {
    const tool = fakeTool("a", {
      title: "A",
      parameters: { type: "object", properties: { n: { type: "number" } } },
      returns: { type: "string" },
      risk: "high",
      tags: ["x"],
      requiresApproval: true,
      execute: () => "",
    });
    const [described] = JSON.parse(writeToolList([tool]));
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

  it("keeps to itself whom a tool is for", () => {
    const text = writeToolList([
      fakeTool("a", { roles: ["secret-role"], scopes: ["secret-scope"] }),
    ]);
    assertEquals(text.includes("secret"), false);
  });
});
