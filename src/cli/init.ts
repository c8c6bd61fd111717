/** `plue init`: writes a first module or a first `plue.json`, and adds it to an MCP client. */

import { isCancel, select, text } from "@clack/prompts";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { describeThrown, isToolName, TOOL_NAME_RULE } from "../tool/mod.ts";
import { mcp } from "./mcp.ts";
import { MCP_CLIENTS } from "./mcp_clients.ts";
import { sourceSettings } from "./sources/mod.ts";
import { CommandError, EXIT, type Terminal, usageError } from "./terminal.ts";

const KINDS = {
  module: {
    file: "tools.mjs",
    label: "Tools of your own, in a module",
    question: "What is the name of the first tool?",
    example: "greet",
    make: moduleText,
  },
  gateway: {
    file: "plue.json",
    label: "One endpoint for other servers, in a plue.json",
    question: "What is the first source? (a command, the URL of an MCP server, or a file)",
    example: "everything=npx -y @modelcontextprotocol/server-everything",
    make: gatewayText,
  },
} as const;

type Kind = keyof typeof KINDS;

/**
 * Asks three questions. An argument or a flag of the command line replaces its question.
 *
 * @param what The name of the first tool, or the first source.
 */
export async function init(
  kind: Kind | undefined,
  what: string | undefined,
  flags: { readonly client?: string; readonly out?: string },
  terminal: Terminal,
): Promise<number> {
  const { stdin: input, stderr: output, signal } = terminal.io;
  const prompt = { input, output, signal };
  if (!terminal.canAsk && (kind === undefined || what === undefined)) {
    const { module, gateway } = KINDS;
    throw usageError(
      "Cannot ask questions without a terminal: run " +
        `plue init module ${module.example}, or plue init gateway "${gateway.example}"`,
    );
  }
  const chosen = kind ?? await answered(select<Kind>({
    ...prompt,
    message: "What do you want to begin with?",
    options: [
      { value: "module", label: KINDS.module.label },
      { value: "gateway", label: KINDS.gateway.label },
    ],
  }));
  const { file, question, example, make } = KINDS[chosen];
  const named = what ??
    await answered(text({ ...prompt, message: question, initialValue: example }));
  const content = make(named);
  const client = flags.client ?? (!terminal.canAsk ? "none" : await answered(select({
    ...prompt,
    message: "Which MCP client gets it?",
    options: ["none", ...MCP_CLIENTS].map((value) => ({ value, label: value })),
  })));
  const path = resolve(flags.out ?? file);
  await writeFile(path, content, { flag: "wx" }).catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === "EEXIST"
      ? "it exists already; choose another file with --out"
      : describeThrown(cause);
    throw usageError(`Cannot write ${path}: ${why}`, { cause });
  });
  const isModule = chosen === "module";
  terminal.print(`Wrote ${path}. Serve it: npx @plue/cli serve ${isModule ? "" : "-c "}${path}`);
  if (client === "none") return EXIT.ok;
  const [tools, config] = isModule ? [[path], {}] : [[], { config: path }];
  return await mcp("add", client, tools, config, terminal);
}

async function answered<Value>(question: Promise<Value>): Promise<Exclude<Value, symbol>> {
  const answer = await question;
  if (isCancel(answer)) throw new CommandError("Cancelled: no file was written", 130);
  return answer as Exclude<Value, symbol>;
}

function moduleText(name: string): string {
  if (!isToolName(name)) {
    throw usageError(`Cannot write a module: the name of the tool must be ${TOOL_NAME_RULE}`);
  }
  const { risk, description, argument, about, result } = draftOf(name);
  return `/** Tools for plue: each has a description, a schema of its parameters, and a function. */

export const tools = [
  {
    name: ${JSON.stringify(name)},
    description: ${JSON.stringify(description)},
    risk: "${risk}",
    parameters: {
      type: "object",
      properties: { ${argument}: { type: "string", description: ${JSON.stringify(about)} } },
      required: ["${argument}"],
      additionalProperties: false,
    },
    execute: (input) => \`${result.replace("*", `\${input.${argument}}`)}\`,
  },
];
`;
}

/** The risks of tools, by the first word of their names. */
const RISKS = [
  [/^(?:check|count|find|get|list|read|search|show)$/, "low"],
  [/^(?:cancel|delete|drop|pay|remove|wipe)$/, "high"],
] as const;

/** Drafts a tool from the words of its name, such as `countWords`. `*` in the result is the argument. */
function draftOf(name: string) {
  if (/^(?:greet|hello)$/.test(name)) {
    const about = "The name of the person";
    const description = "Greets a person by name.";
    return { risk: "safe", description, argument: "who", about, result: "Hello, *!" };
  }
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  const [verb = "", ...object] = words;
  const last = object.at(-1) ?? "";
  const [, risk = "medium"] = RISKS.find(([verbs]) => verbs.test(verb)) ?? [];
  const does = `${verb.charAt(0).toUpperCase()}${[verb, ...object].join(" ").slice(1)}`;
  return {
    risk,
    description: `${does}. Write here what it does, and when a model should use it.`,
    argument: /^[a-z]/.test(last) ? last : "input",
    about: `The ${object.join(" ") || "input"}`,
    result: `${does}: *`,
  };
}

function gatewayText(source: string): string {
  const [name, settings] = sourceSettings(source);
  const $schema = "https://unpkg.com/@plue/cli/dist/plue.schema.json";
  return `${JSON.stringify({ $schema, sources: { [name]: settings } }, null, 2)}\n`;
}
