/**
 * "Design Notes" of the toolset library (in Go): a builder with filters and a policy, the toolset
 * in a stable order, and its exposure to a protocol with warnings.
 *
 * Prints:
 *
 * ```text
 * 2 tools: github:list, github:read
 * github:delete: "github:delete" is removed by policy: policy withoutScopes denies it: it needs the scope repo:admin
 * allow(undefined): false
 * exported: github__list, github__read
 * warnings: "github:list" at "/title": the target has no field for "title"
 * errors: 0
 * ```
 */

import { defineTool, ToolRegistry, ToolsetBuilder } from "../../mod.ts";
import { Exposure } from "../../src/formats/mod.ts";

const registry = new ToolRegistry({
  tools: [
    defineTool({
      namespace: "github",
      name: "list",
      title: "List repositories",
      description: "Lists repositories",
      tags: ["read"],
    }),
    defineTool({
      namespace: "github",
      name: "read",
      description: "Reads a repository",
      tags: ["read"],
    }),
    defineTool({
      namespace: "github",
      name: "delete",
      description: "Deletes a repository",
      tags: ["admin"],
      scopes: ["repo:admin"],
    }),
    defineTool({ namespace: "mail", name: "read", description: "Reads a mail", tags: ["read"] }),
  ],
});

/** Denies tools that require a scope. It runs after all filters. */
const withoutScopes = {
  name: "withoutScopes",
  allow: (tool?: { readonly scopes: readonly string[] } | null) => tool?.scopes.length === 0,
  reason: (tool: { readonly scopes: readonly string[] }) => `it needs the scope ${tool.scopes}`,
};

const toolset = new ToolsetBuilder("github")
  .fromRegistry(registry)
  .withNamespace("github")
  .withTagsAny("read", "admin")
  .withPolicy(withoutScopes)
  .build();
console.log(`${toolset.ids.length} tools: ${toolset.ids.join(", ")}`);
console.log("github:delete:", toolset.explain("github:delete").reason);
console.log("allow(undefined):", withoutScopes.allow(undefined));

const { tools, warnings, errors } = new Exposure(toolset, "mistral").exportWithWarnings();
console.log("exported:", tools.map((tool) => tool.function.name).join(", "));
console.log("warnings:", warnings.join(", "));
console.log("errors:", errors.length);
