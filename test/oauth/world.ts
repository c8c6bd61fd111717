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
import { assert } from "@std/assert";
import { CLIENT, type OAuthServer } from "./server.ts";

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
