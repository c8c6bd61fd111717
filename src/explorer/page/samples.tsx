/** The code of a call, for programs in other languages. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { BASE, token } from "./api.ts";
import { Block, Copy, Segments } from "./parts.tsx";
import type { ListedTool } from "./tools.tsx";

function samplesOf(id: string, input: unknown): Readonly<Record<string, string>> {
  const url = `${BASE}tools/${encodeURIComponent(id)}/execute`;
  const hasToken = token.value !== "";
  const body = JSON.stringify({ arguments: input });
  const indented = JSON.stringify({ arguments: input }, null, 2).replaceAll("\n", "\n  ");
  return {
    curl: joined(
      `curl -s ${inShell(url)} \\`,
      hasToken && '  -H "authorization: Bearer $PLUE_TOKEN" \\',
      "  -H 'content-type: application/json' \\",
      `  --data-raw ${inShell(body)}`,
    ),
    TypeScript: joined(
      `const response = await fetch(${JSON.stringify(url)}, {`,
      '  method: "POST",',
      "  headers: {",
      '    "content-type": "application/json",',
      hasToken && "    authorization: `Bearer ${process.env.PLUE_TOKEN}`,",
      "  },",
      `  body: JSON.stringify(${indented}),`,
      "});",
      "console.log(await response.json());",
    ),
    Python: joined(
      "import json, os, urllib.request",
      "",
      "request = urllib.request.Request(",
      `    ${JSON.stringify(url)},`,
      `    data=${JSON.stringify(body)}.encode(),`,
      "    headers={",
      '        "content-type": "application/json",',
      hasToken && '        "authorization": "Bearer " + os.environ["PLUE_TOKEN"],',
      "    },",
      ")",
      "with urllib.request.urlopen(request) as response:",
      "    print(json.load(response))",
    ),
    C: joined(
      "#include <plue.h>",
      "#include <stdio.h>",
      "",
      "int main(void) { /* PLUE_TOOLS names the TypeScript module that exports the registry */",
      `    char *result = plue_tool_execute(${inC(id)},`,
      `        ${inC(JSON.stringify(input ?? {}))}, NULL);`,
      "    puts(result);",
      "    plue_free_json(result);",
      "    plue_shutdown();",
      "}",
    ),
  };
}

function joined(...lines: readonly (string | false)[]): string {
  return lines.filter((line) => line !== false).join("\n");
}

function inShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns a C string literal. "?" is escaped because of trigraphs. */
function inC(text: string): string {
  return JSON.stringify(text).replaceAll("?", "\\?");
}

export function Samples({ tool, input, title = "The same call for other programs", more = {} }: {
  readonly tool: ListedTool;
  readonly input: unknown;
  readonly title?: string;
  /** Further samples by name, which are shown first. */
  readonly more?: Readonly<Record<string, string>>;
}): JSX.Element {
  const samples = { ...more, ...samplesOf(tool.id, input) };
  const names = Object.keys(samples);
  const [language = names[0] ?? "", setLanguage] = useState<string>();
  const text = (samples as Readonly<Record<string, string>>)[language] ?? "";
  return (
    <section class="samples panel" aria-label={title}>
      <header>
        <h2 class="grow">{title}</h2>
        <Copy text={text} label="Copy the sample" />
      </header>
      <div class="stack pad">
        <Segments
          label="Language"
          values={names.map((name) => [name, name])}
          value={language}
          onChange={setLanguage}
        />
        <Block label={`The call in ${language}`}>{text}</Block>
      </div>
    </section>
  );
}
