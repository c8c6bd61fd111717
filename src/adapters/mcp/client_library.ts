/** The package of the MCP client, which only programs that import servers have to install. */

import { fail } from "../../tool/mod.ts";

export function loadClient(): Promise<typeof import("@modelcontextprotocol/client")> {
  // With `catch`, bundlers leave the import in place if the package is not installed.
  return import("@modelcontextprotocol/client").catch(failWithout);
}

export function loadSkillsClient(): Promise<
  typeof import("@modelcontextprotocol/client/ext/skills")
> {
  return import("@modelcontextprotocol/client/ext/skills").catch(failWithout);
}

function failWithout(cause: unknown): never {
  fail("import an MCP server", 'run "npm install @modelcontextprotocol/client" first', cause);
}
