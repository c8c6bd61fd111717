import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import type { LoadedPolicy } from "@open-policy-agent/opa-wasm";
import { ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { opaPolicy, type OpaProgram } from "../../../src/adapters/policies/mod.ts";

const registry = new ToolRegistry({
  tools: [
    { name: "read", description: "Reads.", risk: "low", execute: () => "text" },
    { name: "status", namespace: "chain", description: "Tells.", risk: "safe", roles: ["ops"] },
    { name: "rm", description: "Deletes.", risk: "high", execute: () => "gone" },
  ],
});

/** The policy program's input. */
interface PolicyInput {
  readonly user?: string;
  readonly tool: { readonly id: string; readonly riskLevel: number };
}

/** A loaded program whose rule returns the result of `rule`, or is undefined. */
function program(rule: (input: PolicyInput) => unknown): OpaProgram {
  return {
    evaluate(input) {
      const result = rule(input as PolicyInput);
      return result === undefined ? [] : [{ result }];
    },
  };
}

// The package's program has the adapter's type.
true satisfies LoadedPolicy extends OpaProgram ? true : false;

describe("opaPolicy()", () => {
  it("shows the reasons of a rule", () => {
    const guests = opaPolicy(
      program(({ user, tool }) => ({
        allow: user === "ada" && tool.id === "read",
        reason: [`${user} is a guest`, "guests only read"],
      })),
      { name: "guests", input: { user: "ada" } },
    );
    const toolset = registry.select({ policies: [guests] });
    assertEquals(toolset.ids, ["read"]);
    assertStringIncludes(
      toolset.explain("rm").reason,
      "policy guests denies it: ada is a guest; guests only read",
    );
  });

  it("passes the facts about a tool as JSON", () => {
    let seen: unknown;
    const policy = opaPolicy(program((input) => (seen = input, true)), {
      input: { user: "ada", tool: "not this" },
    });
    assertEquals(policy.allow(registry.getTool("chain:status")), true);
    assertEquals(seen, {
      user: "ada",
      tool: {
        id: "chain:status",
        name: "status",
        namespace: "chain",
        risk: "safe",
        riskLevel: 0,
        tags: [],
        roles: ["ops"],
        scopes: [],
        requiresApproval: false,
        requiresTransaction: false,
      },
    });
    assertEquals(policy.allow(undefined), false);
  });

  it("denies if the rule is undefined or its result is not a verdict", () => {
    for (
      const [evaluate, reason] of [
        [() => [], "the rule is undefined for this tool"],
        [() => [{ result: "yes" }], 'must return a boolean or an object with "allow", not "yes"'],
        [() => null, "it must return a list, not null"],
        [() => [{ result: { allow: 1 } }], "the rule does not return true"],
        [
          () => Promise.resolve([{ result: true }]),
          "the result must not be a promise: decide in authorize",
        ],
        [
          () => {
            throw new Error("conflict");
          },
          "threw: conflict",
        ],
      ] as const
    ) {
      const toolset = registry.select({ policies: [opaPolicy({ evaluate })] });
      assertEquals(toolset.ids, []);
      assertStringIncludes(toolset.explain("rm").reason, reason);
    }
  });

  it("requires approval if a rule does", async () => {
    const careful = opaPolicy(
      program(({ tool }) => ({ allow: true, requiresApproval: tool.riskLevel > 2 })),
    );
    const dispatcher = new ToolDispatcher(registry.select({ policies: [careful] }), {
      approve: () => false,
    });
    const outcomes = await Promise.all(["read", "rm"].map((name) => dispatcher.dispatch({ name })));
    assertEquals(outcomes.map((one) => one.ok ? one.content : one.error.code), ["text", "denied"]);
  });

  it("rejects a program that is not loaded, and invalid options", () => {
    const loading = Promise.resolve(program(() => true)) as never;
    assertThrows(() => opaPolicy(loading), TypeError, "await loadPolicy(…) first");
    assertThrows(() => opaPolicy({} as never), TypeError, "must be the result of loadPolicy()");
    assertThrows(
      () => opaPolicy(program(() => true), { input: 1 as never }),
      TypeError,
      '"/input" must be an object, not 1',
    );
  });
});
