// The tools of GitHub's MCP server, imported and exported again. Real input, which is not in this
// repository: the tests are skipped where it is absent.

import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import { importTools } from "../../src/formats/mod.ts";
import { exportTools, listTargets } from "../../src/formats/mod.ts";
import { maybe } from "../support/skip.ts";

const FILE = new URL("../../../shared/data/github-mcp-tools.json", import.meta.url);
const there = existsSync(FILE);
const withData = maybe(there, "../shared/data/github-mcp-tools.json is not there");

interface Listed {
  readonly name: string;
  readonly annotations: { readonly readOnlyHint?: boolean; readonly destructiveHint?: boolean };
}
const document: { readonly tools: readonly Listed[] } = there
  ? JSON.parse(readFileSync(FILE, "utf8"))
  : { tools: [] };

/** Sorted as exports sort their tools. */
const sorted = document.tools.toSorted((a, b) => a.name < b.name ? -1 : 1);

describe("the tools of GitHub's MCP server", () => {
  withData("are all imported, without warnings", () => {
    const { tools, warnings, rejected } = importTools("mcp", document, { namespace: "github" });
    assertEquals(tools.length, 117);
    assertEquals([warnings, rejected], [[], []]);
    assertEquals(tools.every(({ id, name }) => id === `github:${name}`), true);
  });

  withData("are unchanged after import and export", () => {
    const { tools } = importTools("mcp", document);
    for (const target of ["mcp@2026-07-28", "mcp@2025-11-25"] as const) {
      const { tools: again, losses, rejected } = exportTools(tools, target);
      assertEquals(
        (again as readonly Listed[]).toSorted((a, b) => a.name < b.name ? -1 : 1),
        sorted as never,
      );
      assertEquals([losses, rejected], [[], []]);
    }
  });

  withData("have the risk that follows from their hints", () => {
    for (const [index, { risk }] of importTools("mcp", document).tools.entries()) {
      const hints = document.tools[index]?.annotations;
      const wanted = hints?.destructiveHint === true
        ? "high"
        : hints?.readOnlyHint === true
        ? "low"
        : "medium";
      assertEquals(risk, wanted);
    }
  });

  withData("are exported to every target, and imported again unchanged", () => {
    const { tools } = importTools("mcp", document);
    for (const { id } of listTargets()) {
      const { rejected, names } = exportTools(tools, id);
      // Only a limit on the size of a request can reject these tools.
      assertEquals(rejected.filter(({ rule }) => !rule.startsWith("max")), []);
      assertEquals(names.encodings.length, tools.length - rejected.length);
    }
    const sources = {
      "openai.chat": "openai",
      "openai.responses": "openai",
      anthropic: "anthropic",
      gemini: "gemini",
      "gemini.typed": "gemini",
      bedrock: "bedrock",
    } as const;
    for (const [target, source] of Object.entries(sources)) {
      const { tools: sent } = exportTools(tools, target as keyof typeof sources);
      const back = importTools(source, sent);
      assertEquals([target, back.warnings, back.rejected], [target, [], []]);
      const { tools: again } = exportTools(back.tools, target as keyof typeof sources);
      assertEquals(JSON.stringify(again), JSON.stringify(sent));
    }
  });

  withData("are unchanged after an export to OpenAPI and an import", () => {
    const { tools } = importTools("mcp", document);
    const back = importOpenApi(exportTools(tools, "openapi").tools);
    assertEquals([back.warnings, back.rejected], [[], []]);
    const textsOf = (list: typeof tools): unknown =>
      list.map(({ id, title, description, parameters, annotations, risk }) => ({
        id,
        title,
        description,
        parameters,
        annotations,
        risk,
      })).toSorted((a, b) => a.id < b.id ? -1 : 1);
    assertEquals(textsOf(back.tools), textsOf(tools));
  });
});
