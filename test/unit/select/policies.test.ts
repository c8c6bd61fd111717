import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  allowAll,
  buildToolset,
  byCategory,
  byMaximumRisk,
  byNamespace,
  byScopes,
  byTag,
  denyAll,
  type ToolPolicy,
} from "../../../src/select/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const status = fakeTool("chain:status", { category: "git", risk: "safe", tags: ["read"] });
const write = fakeTool("file-write", {
  category: "filesystem",
  risk: "high",
  tags: ["write"],
  scopes: ["fs", "fs:write"],
});

describe("policies", () => {
  const rows: [policy: ToolPolicy, status: boolean, write: boolean, reason: string | undefined][] =
    [
      [allowAll, true, true, undefined],
      [denyAll, false, false, "every tool is denied"],
      [byNamespace("chain"), true, false, 'no namespace is not among "chain"'],
      [byTag("read", "list"), true, false, 'it has none of the tags "read", "list"'],
      [byCategory("git"), true, false, 'category "filesystem" is not among "git"'],
      [byScopes("fs"), true, false, 'the caller lacks the scopes "fs:write"'],
      [byScopes(), true, false, 'the caller lacks the scopes "fs", "fs:write"'],
      [byMaximumRisk("low"), true, false, "risk high is above the limit low"],
    ];
  for (const [policy, allowsStatus, allowsWrite, reason] of rows) {
    it(`${policy.name} decides, gives its reason, and denies what does not exist`, () => {
      assertEquals(policy.allow(status), allowsStatus);
      assertEquals(policy.allow(write), allowsWrite);
      // "Allow(nil) must return false."
      assertEquals([policy.allow(undefined), policy.allow(null)], [false, false]);
      assertEquals(policy.reason?.(write), reason);
    });
  }

  it("are frozen, so that no code can open one", () => {
    for (const [policy] of rows) assertEquals(Object.isFrozen(policy), true);
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
      assertThrows(() => buildToolset([status], { policies }), TypeError, message);
    }
    // An instance of a class may have fields and methods of its own.
    class Limit {
      readonly most = 1;
      allow() {
        return this.most > 0;
      }
    }
    assertEquals(buildToolset([status], { policies: [new Limit()] }).size, 1);
  });
});
