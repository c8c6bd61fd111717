/** Serves a `plue.json` in this process, for the tests. */

import { assertEquals } from "@std/assert";
import { type Folder, growingText, plue, postJson } from "../support.ts";

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
  const path = await files.write(name, settings);
  const controller = new AbortController();
  const output = growingText();
  const ended = plue(["serve", "-c", path, "--port", "0"], {
    ...{ env, controller, heard: output.add },
  });
  await Promise.race([
    output.shown(/to http\S+\/mcp/),
    ended.then(({ stderr }) => {
      throw new Error(stderr);
    }),
  ]);
  const [, url = ""] = /to (http:\/\/[\w.:]+)\/mcp/.exec(output.text()) ?? [];
  return {
    ...{ url, path, printed: output.shown },
    async tools(headers = {}) {
      const { tools } = await (await fetch(`${url}/tools`, { headers })).json();
      return (tools as { id: string }[]).map(({ id }) => id);
    },
    async call(tool, args = {}, headers = {}) {
      const called = await postJson(`${url}/tools/${tool}/execute`, { arguments: args }, headers);
      const { content, code, detail } = await called.json();
      return content ?? `${code}: ${detail}`;
    },
    async [Symbol.asyncDispose]() {
      controller.abort();
      assertEquals((await ended).code, 0);
    },
  };
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
