/** A dispatcher whose tool calls the API of the test server as its caller. */

import * as plue from "@plue/tools";
import { type CallStore, memoryCallStore, storedTickets } from "@plue/tools/calls";
import {
  credentials,
  oauthCallback,
  type OAuthCredentials,
  oauthCredentials,
  type OAuthCredentialsOptions,
} from "@plue/tools/credentials";
import { bearerAuth, createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { assert } from "@std/assert";
import { serve } from "../runtime/serve.ts";
import { freePort } from "../support/free_port.ts";
import { CLIENT, type OAuthServer, startOAuthServer } from "./server.ts";

export const KEY: Uint8Array = new Uint8Array(32).fill(7);

export function sourceFor(
  server: OAuthServer,
  options: Partial<OAuthCredentialsOptions> = {},
): OAuthCredentials {
  return oauthCredentials({
    store: memoryCallStore(),
    keys: [KEY],
    redirectUri: server.redirectUri,
    providers: {
      hub: {
        authorizationEndpoint: `${server.url}/auth`,
        tokenEndpoint: `${server.url}/token`,
        ...CLIENT,
      },
    },
    ...options,
  });
}

/** Returns a tool that returns the account of its caller's token. */
export function whoami(server: OAuthServer, scopes: readonly string[] = ["repo"]) {
  return plue.defineTool({
    name: "whoami",
    description: "Returns the caller's account at the hub.",
    credentials: { hub: { scopes } },
    async execute(_, { credential, signal }) {
      const hub = credential("hub");
      const { authorization } = hub;
      const response = await fetch(`${server.url}/api/me`, { headers: { authorization }, signal });
      if (response.status === 401) await hub.reject();
      return (await response.json()).account ?? "nobody";
    },
  });
}

export interface World {
  readonly source: OAuthCredentials;
  readonly registry: plue.ToolRegistry;
  readonly dispatcher: plue.ToolDispatcher;
  readonly reports: plue.DispatchErrorReport[];
  readonly store: CallStore;
  /** Returns the content of the result, or the code of the failure. */
  call(principal?: string): Promise<unknown>;
  /** Calls the tool, gives permission as `account`, and resumes the call. */
  permit(principal: string, account?: string): Promise<unknown>;
}

export function worldOf(
  server: OAuthServer,
  options: Partial<OAuthCredentialsOptions> & { readonly scopes?: readonly string[] } = {},
  more: plue.ToolDispatcherOptions = {},
): World {
  const { scopes, store = memoryCallStore(), ...rest } = options;
  const source = sourceFor(server, { ...rest, store });
  const reports: plue.DispatchErrorReport[] = [];
  const registry = new plue.ToolRegistry({ tools: [whoami(server, scopes)] });
  const dispatcher = new plue.ToolDispatcher(registry, {
    credentials: credentials(source),
    tickets: storedTickets(store),
    onError: (report) => void reports.push(report),
    ...more,
  });
  return {
    ...{ source, registry, dispatcher, reports, store },
    call: async (principal) =>
      contentOf(await dispatcher.dispatch({ name: "whoami" }, { principal })),
    async permit(principal, account = principal) {
      const waiting = await dispatcher.dispatch({ name: "whoami" }, { principal });
      const url = urlIn(waiting);
      assert(plue.isSuspended(waiting));
      const page = await callbackOf(source, principal)(
        new Request(await server.open(url, account)),
      );
      assert(page.ok, await page.text());
      const answers = { "credential.hub.1": { action: "accept" } } as const;
      return contentOf(await dispatcher.resume(waiting.ticket, answers, { principal }));
    },
  };
}

/** The callback of a browser in which `principal` is logged in. */
export function callbackOf(
  source: OAuthCredentials,
  principal = "ann",
): ReturnType<typeof oauthCallback> {
  return oauthCallback(source, { authorize: () => ({ principal }) });
}

/** A service for ann and bob, whose browsers are identified by a cookie. */
export async function startService(options: ToolHandlerOptions = {}) {
  const port = await freePort();
  const hub = await startOAuthServer(`http://127.0.0.1:${port}/oauth/callback`);
  const source = sourceFor(hub);
  const registry = new plue.ToolRegistry({ tools: [whoami(hub)] });
  const dispatcher = new plue.ToolDispatcher(registry, {
    credentials: credentials(source),
    tickets: storedTickets(memoryCallStore()),
  });
  const tokens = new Map(
    ["ann", "bob"].map((name) => [`${name}-at-the-tools`, { principal: name }]),
  );
  const authorize = bearerAuth({ tokens });
  const access = { authorize, dispatcher, selection: { maxRisk: "medium" } } as const;
  const app = createToolHandler(registry, { ...access, ...options });
  const callback = oauthCallback(source, {
    authorize: ({ headers }) => ({
      principal: /session=(\w+)/.exec(headers.get("cookie") ?? "")?.[1],
    }),
  });
  app.get(callback.path, ({ req }) => callback(req.raw));
  app.all("/mcp", createMcpEndpoint(registry, access).handle);
  const served = await serve(app.fetch, port);
  return {
    ...{ hub, url: served.url },
    /** Gives permission in the browser of a caller. */
    async permit(url: string, principal: string): Promise<number> {
      const link = await hub.open(url, principal);
      const headers = { cookie: `session=${principal}` };
      return (await fetch(link, { headers })).status;
    },
    async [Symbol.asyncDispose]() {
      await served.stop();
      await hub[Symbol.asyncDispose]();
    },
  };
}

export function contentOf(result: plue.ToolResult): unknown {
  return result.ok ? result.content : result.error.code;
}

/** Returns the URL that a suspended call shows to its caller. */
export function urlIn(
  result: plue.ToolResult | { readonly questions: readonly plue.Question[] },
): string {
  const { questions: [question] } = result as { readonly questions: readonly plue.Question[] };
  assert(question?.url !== undefined, JSON.stringify(result));
  return question.url;
}

/** Presses the button of the page on which a person confirms a caller. */
export async function pressedOn(page: Response, link: string): Promise<Request> {
  const form = new URL(link);
  const fields = (await page.text()).matchAll(/name="(.*?)" value="(.*?)"/g);
  for (const [, name = "", value = ""] of fields) {
    const text = value.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(code));
    form.searchParams.set(name, text);
  }
  return new Request(form);
}
