/**
 * A chain of tasks that two kinds of agents work on: `control` plans and judges, `impl` does the
 * work. The tasks are Markdown files in a folder.
 *
 * @module
 */

import { ToolRegistry } from "../../mod.ts";
import type { ImplSession } from "./sessions.ts";
import { TaskFolder } from "./tasks.ts";
import { chainTools } from "./tools.ts";

export type { ImplSession } from "./sessions.ts";

/** Options for {@linkcode createChainRegistry}. */
export interface ChainOptions {
  /** The folder of the tasks. Its name is the chain's id. */
  readonly folder: string;
  /**
   * Starts an agent for a session that was recorded. Absent: `spawn_impl_session` writes the order
   * and says that nothing was launched.
   */
  readonly launch?: (session: ImplSession) => void | Promise<void>;
  /**
   * The clock of the tasks' history.
   *
   * @default {() => new Date()}
   */
  readonly now?: () => Date;
}

/**
 * Makes a registry with the tools of a chain. Give each agent `registry.select({ role })`.
 *
 * @param options The folder, and what the host adds.
 * @returns The registry.
 */
export function createChainRegistry(options: ChainOptions): ToolRegistry {
  const { folder, launch, now = () => new Date() } = options;
  return new ToolRegistry({ tools: chainTools({ tasks: new TaskFolder(folder), now, launch }) });
}
