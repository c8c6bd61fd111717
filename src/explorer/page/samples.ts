/**
 * Code samples of a call in curl, TypeScript, Python and C. They read the token from the
 * environment and never contain it.
 *
 * @module
 */

/** The call of a sample. */
export interface SampleCall {
  /** The URL of the service, with a trailing slash. */
  readonly url: string;
  readonly id: string;
  readonly arguments: unknown;
  /** True if the service requires a token. */
  readonly hasToken: boolean;
}

/** The languages, each with the function that writes a call. */
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

/** Returns a JSON value as a Python literal. */
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
  // JSON strings and numbers are valid in Python if lone surrogates are escaped as in JSON.
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

/**
 * Returns a C string literal. Octal escapes end after three digits; "?" is escaped because of
 * trigraphs.
 */
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
