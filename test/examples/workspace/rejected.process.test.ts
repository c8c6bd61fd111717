// The arguments that each tool rejects, in a workspace `ws` next to a folder `outside`.

import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher } from "../../../mod.ts";
import { createWorkspaceRegistry } from "../../../examples/workspace/mod.ts";
import data from "./rejected.json" with { type: "json" };
import { temporaryFolder } from "./testing.ts";

type Row = readonly [what: string, args: object, code: string, message: string];

for (const [name, rows] of Object.entries(data) as [string, readonly unknown[]][]) {
  describe(name, () => {
    for (const [what, args, code, message] of rows as readonly Row[]) {
      it(`rejects ${what}, changes nothing, and does not show the path of the workspace`, async () => {
        await using folder = await temporaryFolder({
          "ws/a": "a",
          "ws/d/x": "x",
          "ws/.git/config": "c",
          "outside/secret": "s",
        });
        const root = join(folder.path, "ws");
        await symlink("../outside/secret", join(root, "out"));
        await symlink("../outside", join(root, "outdir"));
        await symlink("../outside/nothing", join(root, "nothing"));
        await symlink(".git", join(root, "dot"));
        const before = await folder.list();
        const content = name === "file-write" ? { content: "evil" } : {};
        const dispatcher = new ToolDispatcher(createWorkspaceRegistry({ root }));
        const result = await dispatcher.dispatch({ name, arguments: { ...content, ...args } });
        assert(!result.ok);
        assertEquals(result.error.code, code);
        assertStringIncludes(result.error.message, message);
        assertEquals(JSON.stringify(result.error).includes(folder.path), false);
        assertEquals([await folder.list(), await folder.read("outside/secret")], [before, "s"]);
      });
    }
  });
}
