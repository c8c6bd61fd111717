/** A registry and a dispatcher for tests of rules. */

import * as plue from "@plue/tools";
import { type Rule, rules, type RulesOptions } from "@plue/tools/rules";

export const PAY: plue.ToolDefinition = {
  name: "bank:pay",
  description: "Pays an amount.",
  parameters: { type: "object", properties: { euros: {}, to: { type: "string" } } },
  execute: () => "paid",
};

export interface World {
  readonly dispatcher: plue.ToolDispatcher;
  readonly registry: plue.ToolRegistry;
  readonly reports: plue.DispatchErrorReport[];
  /** Returns the content of the result, or the code of the failure. */
  call(name: string, args?: unknown, sessionId?: string, principal?: string): Promise<unknown>;
}

export function worldOf(
  list: readonly Rule[],
  tools: readonly plue.ToolDefinition[] = [PAY],
  options: plue.ToolDispatcherOptions = {},
  ruleOptions: RulesOptions = {},
): World {
  const registry = new plue.ToolRegistry({ tools });
  const reports: plue.DispatchErrorReport[] = [];
  const dispatcher = new plue.ToolDispatcher(registry, {
    ...options,
    rules: rules(list, ruleOptions),
    onError: (report) => void reports.push(report),
  });
  return {
    dispatcher,
    registry,
    reports,
    call: async (name, args = {}, sessionId = "s", principal = "ann") =>
      codeOf(await dispatcher.dispatch({ name, arguments: args }, { sessionId, principal })),
  };
}

export function codeOf(result: plue.ToolResult): unknown {
  return result.ok ? result.content : result.error.code;
}

export function messageOf(result: plue.ToolResult): string {
  return result.ok ? "" : result.error.message;
}
