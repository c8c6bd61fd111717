/**
 * What the tests of the tools share: a workspace in a temporary folder, and calls to its tools
 * through a dispatcher, as any caller makes them.
 *
 * @module
 */

import {
  type DispatchContext,
  ToolDispatcher,
  type ToolEvent,
  type ToolRegistry,
  type ToolResult,
} from "../../../mod.ts";
import { createWorkspaceRegistry, type WorkspaceRegistryOptions } from "../mod.ts";
import { type TemporaryFolder, temporaryFolder } from "../testing.ts";

/** A workspace of its own; it goes away with `await using`. */
export interface TestWorkspace extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly registry: ToolRegistry;
  readonly dispatcher: ToolDispatcher;
  call(name: string, args?: unknown, context?: DispatchContext): Promise<ToolResult>;
  /** The content of a call that must succeed. */
  ok<T = Record<string, unknown>>(name: string, args?: unknown): Promise<T>;
  /** The error of a call that must fail. */
  fails(name: string, args?: unknown): Promise<{ readonly code: string; readonly message: string }>;
  stream(name: string, args?: unknown, context?: DispatchContext): AsyncIterable<ToolEvent>;
}

/** Makes a workspace with these files in it. */
export async function testWorkspace(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options: Partial<WorkspaceRegistryOptions> = {},
): Promise<TestWorkspace> {
  const folder = await temporaryFolder(files);
  const { registry, transactions } = createWorkspaceRegistry({
    root: folder.path,
    journals: folder.journals,
    ...options,
  });
  const dispatcher = new ToolDispatcher(registry, { transactions });
  const call: TestWorkspace["call"] = (name, args = {}, context) =>
    dispatcher.dispatch({ name, arguments: args }, context);
  return {
    folder,
    registry,
    dispatcher,
    call,
    async ok<T>(name: string, args?: unknown): Promise<T> {
      const result = await call(name, args);
      if (!result.ok) throw new Error(`${name} failed: ${JSON.stringify(result.error)}`);
      return result.content as T;
    },
    async fails(name, args) {
      const result = await call(name, args);
      if (result.ok) throw new Error(`${name} succeeded: ${JSON.stringify(result.content)}`);
      return result.error;
    },
    stream: (name, args = {}, context) => dispatcher.stream({ name, arguments: args }, context),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
