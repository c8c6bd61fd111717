/**
 * LangChain JS: what `tool()` and `bindTools` take.
 *
 * @module
 */

import { OPENAI_NAME_RULE } from "../names.ts";
import type { Profile } from "../profile.ts";
import { ADVISORY, every, features } from "./tables.ts";

/** The parameters of a structured tool. */
export interface LangChainTool {
  name: string;
  description: string;
  schema: { type: "object"; [keyword: string]: unknown };
  extras?: { [key: string]: unknown };
}

/** A list of `StructuredToolParams`. */
export const LANGCHAIN: Profile<LangChainTool, LangChainTool[]> = {
  id: "langchain",
  title: "LangChain JS",
  source: "@langchain/core 1.2.13; 2026-11-20",
  names: OPENAI_NAME_RULE,
  features: features(["examples", "deferLoading", "allowedCallers", "cacheControl"]),
  input: every(ADVISORY),
  draft07: true,
  limits: [],
  wire: (view) => {
    const { deferLoading, allowedCallers, cacheControl } = view.hints;
    const extras = {
      ...(deferLoading === undefined ? {} : { defer_loading: deferLoading }),
      ...(allowedCallers === undefined ? {} : { allowed_callers: allowedCallers }),
      ...(cacheControl === undefined ? {} : { cache_control: cacheControl }),
      ...(view.examples.length === 0 ? {} : {
        input_examples: view.examples.map(({ input }) => input),
      }),
    };
    return {
      name: view.name,
      description: view.description,
      // `defineTool` sees to it that the root is an object.
      schema: view.parameters as LangChainTool["schema"],
      ...(Object.keys(extras).length === 0 ? {} : { extras }),
    };
  },
  assemble: (tools) => tools.map((tool) => tool.wire),
};
