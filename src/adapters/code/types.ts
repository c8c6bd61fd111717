/** The tools of a toolset as declarations of TypeScript, for the model that writes a program. */

import { countTokens, type TokenCounter } from "../../finding/mod.ts";
import { FunctionDefinition, isToolset, type Toolset } from "../../select/mod.ts";
import {
  type Check,
  checkFunction,
  fail,
  groupBy,
  readFields,
  type Tool,
  wholeFrom,
} from "../../tool/mod.ts";
import { comment, memberName, NAMED, type NamedTypes, writeType } from "./schema_types.ts";

/** Options for {@linkcode toolsAsTypeScript}. */
export interface ToolTypesOptions {
  /**
   * The maximum number of tokens, 100 or above; by default there is no limit. The tools with the
   * shortest declarations are declared. A comment at the end names others, as far as there is
   * space, and has the number of the rest.
   */
  readonly maxTokens?: number | undefined;
  /** Counts the tokens of a text. By default an estimate of OpenAI's o200k. */
  readonly count?: TokenCounter | undefined;
}

const ACTION = "write the tools as TypeScript";

const CHECKS = {
  maxTokens: wholeFrom(100),
  count: checkFunction as Check<unknown> as Check<TokenCounter>,
} satisfies { readonly [Field in keyof ToolTypesOptions]-?: Check };

const HEAD = `/** The error of a failed call. */
declare class ToolError extends Error {
  /** The kind of failure, such as "invalid_arguments", "denied" or "timeout". */
  readonly code: string;
}
`;

const ABOUT = "/** All calls are asynchronous. A failed call throws a ToolError. */\n";

/** The declaration of one tool. */
interface Declaration {
  readonly tool: Tool;
  readonly comment: string;
  /** The arguments and the result: `(args: …): Promise<…>;`. */
  readonly signature: string;
  /** The names of the types that the signature needs. */
  readonly types: readonly string[];
}

/**
 * Writes tools as declarations of TypeScript: a global `tools` with a member for each namespace,
 * whose functions take the arguments and return a promise of the result. Tools without a namespace
 * are members of `tools` itself. Schemas that refer to themselves, or are shared, are named types.
 *
 * The same tools and options give the same text, in any order of registration. The text compiles
 * under `strict` for any names, descriptions and schemas: they cannot end a comment or add a
 * declaration. Rules that a type cannot express are in comments or omitted, so a call may still
 * fail with `invalid_arguments`. Values that a schema does not restrict are `unknown`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { buildToolset, defineTool } from "@plue/tools";
 * import { toolsAsTypeScript } from "@plue/tools/code";
 *
 * const tool = defineTool({
 *   name: "close",
 *   namespace: "issues",
 *   description: "Closes an issue.",
 *   parameters: {
 *     type: "object",
 *     properties: { number: { type: "number" }, reason: { enum: ["done", "duplicate"] } },
 *     required: ["number"],
 *   },
 *   returns: { type: "boolean" },
 * });
 * const text = toolsAsTypeScript(buildToolset([tool]));
 * const close = 'close(args: { number: number; reason?: "done" | "duplicate" }): Promise<boolean>;';
 * assert.match(text, /issues: \{/);
 * assert.ok(text.includes(close));
 * ```
 *
 * @param toolset The toolset, of which the available tools are written. Of a bridge, the tools that
 * it gives access to.
 * @throws {TypeError} If an option is unknown or invalid.
 */
export function toolsAsTypeScript(
  toolset: Toolset,
  options: ToolTypesOptions = {},
): string {
  const { maxTokens, count = countTokens } = readFields(ACTION, options, CHECKS);
  if (!isToolset(toolset)) fail(ACTION, "pass a toolset, such as registry.select()");
  const named: NamedTypes = new Map();
  const tools = (toolset.bridge?.behind ?? toolset).available();
  const all = tools.map((tool) => declareTool(tool, named));
  const bySize = all.toSorted((a, b) => a.signature.length - b.signature.length);
  const write = (declared: number, names: number): string => {
    const chosen = new Set(bySize.slice(0, declared));
    const left = all.filter((declaration) => !chosen.has(declaration));
    return writeFile(all.filter((one) => chosen.has(one)), named) + note(left, names);
  };
  const fits = (declared: number, names: number): boolean =>
    maxTokens === undefined || count(write(declared, names)) <= maxTokens;
  if (fits(all.length, 0)) return write(all.length, 0);
  const declared = largest(all.length - 1, (number) => fits(number, 0));
  return write(declared, largest(all.length - declared, (number) => fits(declared, number)));
}

/** Returns the largest number from 0 to `most` that fits, if all numbers below it fit, too. */
function largest(most: number, fits: (number: number) => boolean): number {
  let low = 0;
  let high = most;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

function declareTool(tool: Tool, named: NamedTypes): Declaration {
  const { name, namespace, description, deprecated, parameters, returns = true } = tool;
  const pad = namespace === undefined ? "  " : "    ";
  const args = writeType(parameters, `${name}_arguments`, pad, named);
  const result = writeType(returns, `${name}_result`, pad, named);
  const takesNone = "properties" in parameters && parameters["additionalProperties"] !== true &&
    /^\{ \[key: string\]: (never|unknown) \}$/.test(args.text);
  const mark = FunctionDefinition.fromTool(tool).canCallWithoutParameters ? "?" : "";
  return {
    tool,
    comment: `${pad}${comment({ description, deprecated }, pad, `\n${pad}`)}`,
    signature: `(${takesNone ? "" : `args${mark}: ${args.text}`}): Promise<${result.text}>;`,
    types: [...args.names, ...result.names],
  };
}

/** Writes the comment about the tools without a declaration. */
function note(left: readonly Declaration[], names: number): string {
  if (left.length === 0) return "";
  const ids = left.slice(0, names).map(({ tool }) => tool.id).join(", ");
  const others = left.length - names;
  const rest = names === 0 ? `${others} tools` : others === 0 ? "" : ` and ${others} other tools`;
  return `// Found by search_tools, without a declaration here: ${ids}${rest}.\n`;
}

function writeFile(declarations: readonly Declaration[], named: NamedTypes): string {
  const names = new Set(declarations.flatMap(({ types }) => types));
  const types = [...names].sort().map((name) => named.get(name)).join("");
  const groups = groupBy(declarations, ({ tool }) => tool.namespace ?? tool.name);
  const members = Array.from(groups, ([name, group]) => {
    const [{ tool }] = group as [Declaration];
    const isTool = group.length === 1 && tool.namespace === undefined;
    const written = group.map(({ tool, comment, signature }) => {
      // A tool that is named as a namespace is a function with members.
      const name = isTool || tool.namespace !== undefined ? memberName(tool.name) : "";
      return `${comment}${name}${signature}\n`;
    }).join("");
    return isTool ? written : `  ${memberName(name)}: {\n${written}  };\n`;
  });
  const body = members.length === 0 ? "{}" : `{\n${members.join("")}}`;
  const space = types === "" ? "" : `declare namespace ${NAMED} {\n${types}}\n`;
  return `${HEAD}${space}${ABOUT}declare const tools: ${body};\n`;
}
