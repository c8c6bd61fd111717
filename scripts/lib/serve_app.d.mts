/** The names of the runtimes. */
export const RUNTIME_NAMES: readonly string[];

/** The command that serves the file `app` on a runtime. It prints `Serving <url>` when it does. */
export function serveCommand(runtime: string, app: string): readonly string[];
