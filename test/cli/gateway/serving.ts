/** Serves a `plue.json` in this process, for the tests. */

import { assertEquals } from "@std/assert";
import { type Folder, plue } from "../support.ts";

/** `plue serve -c` in this process. */
export interface Gateway extends AsyncDisposable {
  readonly url: string;
  readonly path: string;
  /** Waits for a line of the program. */
  printed(wanted: RegExp): Promise<void>;
  tools(headers?: Record<string, string>): Promise<readonly string[]>;
  call(tool: string, args?: object, headers?: Record<string, string>): Promise<unknown>;
}

/** Returns a function that writes a file of settings, and serves it in this process. */
export function gatewayIn(files: Folder) {
  return (name: string, settings: object, env: Record<string, string> = {}): Promise<Gateway> =>
    serveFile(files, name, settings, env);
}

async function serveFile(
  files: Folder,
  name: string,
  settings: object,
  env: Record<string, string>,
): Promise<Gateway> {
  const path = await files.write(name, JSON.stringify(settings));
  const controller = new AbortController();
  let output = "";
  const waiting = new Set<() => void>();
  const printed = (wanted: RegExp): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!wanted.test(output)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  const ended = plue(["serve", "-c", path, "--port", "0"], {
    ...{ env, controller },
    heard(text) {
      output += text;
      for (const look of waiting) look();
    },
  });
  await Promise.race([
    printed(/to http\S+\/mcp/),
    ended.then(({ stderr }) => {
      throw new Error(stderr);
    }),
  ]);
  const [, url = ""] = /to (http:\/\/[\w.:]+)\/mcp/.exec(output) ?? [];
  const json = async (path: string, init: RequestInit): Promise<Record<string, unknown>> =>
    await (await fetch(url + path, init)).json();
  return {
    ...{ url, path, printed },
    async tools(headers = {}) {
      const { tools } = await json("/tools", { headers });
      return (tools as { id: string }[]).map(({ id }) => id);
    },
    async call(tool, args = {}, headers = {}) {
      const { content, code, detail } = await json(`/tools/${tool}/execute`, {
        method: "POST",
        body: JSON.stringify({ arguments: args }),
        headers: { "content-type": "application/json", ...headers },
      });
      return content ?? `${code}: ${detail}`;
    },
    async [Symbol.asyncDispose]() {
      controller.abort();
      assertEquals((await ended).code, 0);
    },
  };
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
