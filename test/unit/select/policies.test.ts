import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  allowAll,
  buildToolset,
  byMaximumRisk,
  byNamespace,
  byScopes,
  byTag,
  denyAll,
  type ToolPolicy,
} from "../../../src/select/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const write = fakeTool("file-write", {
  category: "filesystem",
  risk: "high",
  tags: ["write"],
  scopes: ["fs", "fs:write"],
});

describe("policies", () => {
  it("allow or deny every tool that exists, with a reason for a denial", () => {
    const nothing = [undefined, null];
    assertEquals([write, ...nothing].map((tool) => allowAll.allow(tool)), [true, false, false]);
    assertEquals([write, ...nothing].map((tool) => denyAll.allow(tool)), [false, false, false]);
    assertEquals([allowAll.reason, denyAll.reason?.(write)], [undefined, "every tool is denied"]);
  });

  it("are frozen, so that no code can open one", () => {
    for (const policy of [allowAll, denyAll, byTag("a")]) assert(Object.isFrozen(policy));
  });

  it("reject invalid arguments", () => {
    assertThrows(() => byMaximumRisk("none" as "low"), TypeError, 'not "none"');
    assertThrows(() => byTag(""), TypeError, "must be a string that is not empty");
    assertThrows(() => byNamespace(1 as never), TypeError, "not 1");
    assertThrows(() => byScopes(["fs"] as never), TypeError, "not a list");
  });

  it("are rejected with a field that would be ignored", () => {
    const allow = () => true;
    const rows: [policy: object, message: string][] = [
      [
        { name: "p", allow, asks: allow },
        'Cannot use policy p: "/asks" is not one of its fields: name, allow, requiresApproval',
      ],
      [
        { allow, requireApproval: allow },
        'Cannot use policy without a name: "/requireApproval" is not one of its fields: did you ' +
        'mean "requiresApproval"?',
      ],
      [{ allow, revisionn: 1 }, 'did you mean "revision"?'],
    ];
    for (const [policy, message] of rows) {
      const policies = [allowAll, policy as ToolPolicy];
      assertThrows(() => buildToolset([write], { policies }), TypeError, message);
    }
    // An instance of a class may have fields and methods of its own.
    class Limit {
      readonly most = 1;
      allow() {
        return this.most > 0;
      }
    }
    assertEquals(buildToolset([write], { policies: [new Limit()] }).size, 1);
  });
});
