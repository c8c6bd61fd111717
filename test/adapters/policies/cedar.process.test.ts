import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
import { ToolRegistry } from "../../../mod.ts";
import { cedarPolicy, type CedarPolicyOptions } from "../../../src/adapters/policies/mod.ts";

const registry = new ToolRegistry({
  tools: [
    { name: "read", description: "Reads.", risk: "low", tags: ["files"] },
    { name: "status", namespace: "chain", description: "Tells.", risk: "safe", roles: ["ops"] },
    { name: "rm", description: "Deletes.", risk: "high", tags: ["files"] },
  ],
});

const ada = { type: "User", id: "ada" };

function select(options: Omit<CedarPolicyOptions, "principal">) {
  return registry.select({ policies: [cedarPolicy(cedar, { principal: ada, ...options })] });
}

describe("cedarPolicy()", () => {
  it("keeps what Cedar permits, and explains the rest", () => {
    const toolset = select({
      policies: `permit(principal == User::"ada", action == Action::"call", resource)
        when { resource.riskLevel < 2 };`,
    });
    assertEquals(toolset.ids, ["chain:status", "read"]);
    assertEquals(
      toolset.explain("rm").reason,
      '"rm" is removed by policy: policy cedar denies it: no policy permits the tool',
    );
  });

  it("names the policies that forbid", () => {
    const toolset = select({
      name: "company",
      policies: {
        everyone: "permit(principal, action, resource);",
        "no-deletes": 'forbid(principal, action, resource == Tool::"rm");',
      },
    });
    assertEquals(toolset.ids, ["chain:status", "read"]);
    assertStringIncludes(
      toolset.explain("rm").reason,
      "policy company denies it: forbidden by no-deletes",
    );
  });

  it("passes the facts about a tool, without absent fields", () => {
    const toolset = select({
      policies: `permit(principal, action, resource)
        when { resource has namespace && resource.namespace == "chain" && resource has roles };`,
    });
    assertEquals(toolset.ids, ["chain:status"]);
  });

  it("does not replace the policies of another copy of plue", async () => {
    const policies = "forbid(principal, action, resource);";
    assertEquals(select({ policies }).ids, []);
    const copy: string = "../../../src/adapters/policies/mod.ts?copy";
    const other = await import(copy) as { readonly cedarPolicy: typeof cedarPolicy };
    for (let number = 0; number < 20; number++) {
      other.cedarPolicy(cedar, {
        principal: ada,
        policies: `permit(principal, action, resource); // ${number}`,
      });
    }
    assertEquals(select({ policies }).ids, []);
  });

  it("decides by groups, the action and the context", () => {
    const policies = `permit(principal in Group::"ops", action == Action::"list", resource)
      when { context.hour < 18 && resource.tags.contains("files") };`;
    const entities = [{ uid: ada, attrs: {}, parents: [{ type: "Group", id: "ops" }] }];
    const action = { type: "Action", id: "list" };
    assertEquals(select({ policies, entities, action, context: { hour: 9 } }).ids, ["read", "rm"]);
    assertEquals(select({ policies, entities, action, context: { hour: 20 } }).ids, []);
    assertEquals(select({ policies, action, context: { hour: 9 } }).ids, []);
  });

  it("denies if a policy fails, even a `forbid`", () => {
    const toolset = select({
      policies: {
        everyone: "permit(principal, action, resource);",
        broken: "forbid(principal, action, resource) when { resource.owner == principal };",
      },
    });
    assertEquals(toolset.ids, []);
    assertStringIncludes(toolset.explain("rm").reason, 'broken failed: `Tool::"rm"` does not have');
  });

  it("denies if Cedar cannot parse its input", () => {
    const toolset = select({
      policies: "permit(principal, action, resource);",
      context: { hour: 1.5 },
    });
    assertEquals(toolset.ids, []);
    assertStringIncludes(toolset.explain("rm").reason, "Cedar cannot decide: ");
  });

  it("rejects invalid options, and policies that Cedar cannot parse", () => {
    for (
      const [options, message] of [
        [{ policies: "permit(" }, "the policies are invalid: failed to parse"],
        [{ policies: 1 }, "a text, or an object of texts"],
        [{}, "the option policies is missing"],
        [{ policies: "", principal: "ada" }, "a text, or an object of texts"],
        [{ policies: "permit(principal, action, resource);", principal: "ada" }, '"type" and "id"'],
      ] as const
    ) {
      assertThrows(() => select(options as never), TypeError, message);
    }
    assertThrows(
      () => cedarPolicy({} as never, { policies: "", principal: ada }),
      TypeError,
      "engine must be the imported module",
    );
  });
});
