/**
 * The same call for other programs: curl, TypeScript, Python and C. A token is never written into
 * them; they read it from the environment.
 *
 * @module
 */

/** A call to write. */
export interface SampleCall {
  /** The service, with a slash at its end. */
  readonly url: string;
  readonly id: string;
  readonly arguments: unknown;
  /** Whether the service wants a token. */
  readonly hasToken: boolean;
}

/** The languages that there are, with what writes a call in each. */
export const SAMPLES: readonly {
  readonly name: string;
  readonly write: (call: SampleCall) => string;
}[] = [
  { name: "curl", write: curl },
  { name: "TypeScript", write: typescript },
  { name: "Python", write: python },
  { name: "C", write: c },
];

function urlOf({ url, id }: SampleCall): string {
  return `${url}tools/${encodeURIComponent(id)}/execute`;
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function curl(call: SampleCall): string {
  return [
    `curl -s ${shellQuoted(urlOf(call))}`,
    ...(call.hasToken ? [`-H "authorization: Bearer $PLUE_TOKEN"`] : []),
    "-H 'content-type: application/json'",
    `--data-raw ${shellQuoted(JSON.stringify({ arguments: call.arguments }))}`,
  ].join(" \\\n  ");
}

function typescript(call: SampleCall): string {
  const body = JSON.stringify({ arguments: call.arguments }, null, 2).replaceAll("\n", "\n  ");
  return [
    `const response = await fetch(${JSON.stringify(urlOf(call))}, {`,
    '  method: "POST",',
    "  headers: {",
    '    "content-type": "application/json",',
    ...(call.hasToken ? ["    authorization: `Bearer ${process.env.PLUE_TOKEN}`,"] : []),
    "  },",
    `  body: JSON.stringify(${body}),`,
    "});",
    "console.log(await response.json());",
  ].join("\n");
}

function python(call: SampleCall): string {
  return [
    "import json, os, urllib.request",
    "",
    "request = urllib.request.Request(",
    `    ${pythonOf(urlOf(call))},`,
    `    data=json.dumps({"arguments": ${pythonOf(call.arguments)}}).encode(),`,
    "    headers={",
    '        "content-type": "application/json",',
    ...(call.hasToken ? ['        "authorization": "Bearer " + os.environ["PLUE_TOKEN"],'] : []),
    "    },",
    ")",
    "with urllib.request.urlopen(request) as response:",
    "    print(json.load(response))",
  ].join("\n");
}

/** A value of JSON as Python writes it. */
function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") {
    return `{${
      Object.entries(value)
        .map(([key, item]) => `${pythonOf(key)}: ${pythonOf(item)}`)
        .join(", ")
    }}`;
  }
  // Strings and numbers of JSON are those of Python, once lone surrogates are escaped as JSON does.
  return JSON.stringify(value);
}

function c(call: SampleCall): string {
  return [
    "#include <plue.h>",
    "#include <stdio.h>",
    "",
    "int main(void) { /* PLUE_TOOLS names the TypeScript module that exports the registry */",
    `    char *result = plue_tool_execute(${cQuoted(call.id)},`,
    `        ${cQuoted(JSON.stringify(call.arguments ?? {}))}, NULL);`,
    "    puts(result);",
    "    plue_free_json(result);",
    "    plue_shutdown();",
    "}",
  ].join("\n");
}

/** A string of C. Octal escapes end after three digits; "?" is escaped because of trigraphs. */
function cQuoted(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let result = "";
  for (const byte of bytes) {
    const letter = String.fromCharCode(byte);
    if (letter === '"' || letter === "\\" || letter === "?") {
      result += `\\${letter}`;
    } else if (byte >= 0x20 && byte < 0x7f) result += letter;
    else result += `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return `"${result}"`;
}
