// A plain `deno test` has no permissions, so deno.json excludes the tests that need some. The title
// of this test reports that in the result.

import { test } from "bun:test";

interface DenoPermissions {
  readonly permissions: {
    querySync(permission: { readonly name: "run" }): { readonly state: string };
  };
}

const { Deno } = globalThis as { readonly Deno?: DenoPermissions };

if (Deno !== undefined && Deno.permissions.querySync({ name: "run" }).state !== "granted") {
  test.skip("*.process.test.ts [skipped: they need files and processes; npm test runs them]", () => {});
}
