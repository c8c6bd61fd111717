/** The policy engines as rules: Cedar itself, and programs in the form of OPA's loader. */

import { describe, it } from "bun:test";
import { assertEquals, assertMatch } from "@std/assert";
import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
import { cedarPolicy, type CedarPolicyOptions, opaPolicy } from "@plue/tools/policies";
import { noTrifecta } from "@plue/tools/rules";
import { messageOf, PAY, worldOf } from "./support.ts";

const PAGE = { ...PAY, name: "page", labels: { produces: ["untrusted"] } };

const cedarWith = (policies: CedarPolicyOptions["policies"]) =>
  worldOf([cedarPolicy(cedar, { policies, principal: { type: "User", id: "nobody" } })], [
    PAY,
    PAGE,
  ]);

describe("cedarPolicy() as a rule", () => {
  it("decides by the arguments and the principal of the call", async () => {
    const { call, dispatcher } = cedarWith(`
      permit(principal == User::"ann", action, resource) when { context.input.euros <= 100 };
    `);
    assertEquals(await call("bank:pay", { euros: 100 }), "paid");
    assertEquals(await call("bank:pay", { euros: 101 }), "denied");
    assertEquals(await call("bank:pay", { euros: 1 }, "s", "bob"), "denied");
    const result = await dispatcher.dispatch({ name: "bank:pay", arguments: { euros: 1 } });
    assertMatch(messageOf(result), /the rule "cedar" denies it: no policy permits the tool/);
  });

  it("denies values that Cedar does not have, and arguments that are absent", async () => {
    const { call } = cedarWith(
      "permit(principal, action, resource);" +
        "forbid(principal, action, resource) when { context.input.euros > 100 };",
    );
    assertEquals(await call("bank:pay", { euros: 1 }), "paid");
    for (const euros of [1.5, null, "1"]) assertEquals(await call("bank:pay", { euros }), "denied");
    assertEquals(await call("bank:pay"), "denied");
  });

  it("denies arguments that Cedar would read as an entity", async () => {
    const { call } = cedarWith(
      "permit(principal, action, resource) when {" +
        "context.input.euros == principal || context.input.euros == 1 };",
    );
    assertEquals(await call("bank:pay", { euros: 1 }), "paid");
    for (const euros of [{ __entity: { type: "User", id: "ann" } }, '"__entity":']) {
      assertEquals(await call("bank:pay", { euros }), "denied");
    }
  });

  it("decides by the labels of the session", async () => {
    const { call } = cedarWith(`
      permit(principal, action, resource)
        when { !context.session.labels.contains("untrusted") && context.session.id == "s" };
    `);
    assertEquals(await call("bank:pay"), "paid");
    assertEquals(await call("bank:pay", {}, "other"), "denied");
    await call("page");
    assertEquals(await call("bank:pay"), "denied");
  });
});

describe("opaPolicy() as a rule", () => {
  it("receives the call, and allows it, denies it or requires approval", async () => {
    const inputs: unknown[] = [];
    const program = {
      evaluate(input: { context: { input: { euros: number } }; tool: { id: string } }) {
        inputs.push(input.context);
        const { euros } = input.context.input;
        return [{ result: { allow: euros < 100, requiresApproval: euros > 50, reason: "money" } }];
      },
    };
    const { call } = worldOf([opaPolicy(program as never), noTrifecta()], [PAY, PAGE]);
    assertEquals(await call("bank:pay", { euros: 1 }), "paid");
    assertEquals(await call("bank:pay", { euros: 60 }), "approval_required");
    assertEquals(await call("bank:pay", { euros: 200 }), "denied");
    const { now, ...context } = inputs[0] as Record<string, unknown>;
    assertEquals(typeof now, "number");
    assertEquals(context, {
      input: { euros: 1 },
      session: { id: "s", labels: [] },
      caller: { principal: "ann" },
    });
  });

  it("denies numbers of a library's schema that JSON does not have", async () => {
    const jsonSchema = { input: () => ({ type: "object" }), output: () => ({ type: "object" }) };
    const validate = ({ euros }: { euros: string }) => ({ value: { euros: Number(euros) } });
    const parameters = { "~standard": { version: 1, vendor: "test", validate, jsonSchema } };
    const program = {
      // As in Rego, null is below 50.
      evaluate(input: unknown) {
        return [{ result: JSON.parse(JSON.stringify(input)).context.input.euros < 50 }];
      },
    };
    const { call } = worldOf([opaPolicy(program)], [{ ...PAY, parameters } as never]);
    assertEquals(await call("bank:pay", { euros: "49" }), "paid");
    assertEquals(await call("bank:pay", { euros: "1e400" }), "denied");
  });

  it("denies if the program throws, waits, or is undefined", async () => {
    for (
      const evaluate of [
        () => {
          throw new Error("broken");
        },
        () => Promise.resolve([]),
        () => [],
        () => [{ result: "yes" }],
      ]
    ) assertEquals(await worldOf([opaPolicy({ evaluate })]).call("bank:pay"), "denied");
  });
});
