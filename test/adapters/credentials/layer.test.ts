/** The layer of credentials, with sources that need no server. */

import * as plue from "@plue/tools";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import {
  type CredentialRequest,
  credentials,
  type CredentialSource,
  fromContext,
} from "@plue/tools/credentials";
import { taskQueue } from "@plue/tools/queue";
import { deny, rules } from "@plue/tools/rules";
import { assert, assertEquals, assertFalse, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";

const TOKEN = "token-of-ann-0123456789";
const ours = fromContext((name, { principal }) => `${name}-of-${principal}`);

/** Calls a tool that uses the credential `hub`. */
async function call(
  source: CredentialSource,
  execute: Parameters<typeof plue.defineTool>[0]["execute"] & object,
  options: plue.ToolDispatcherOptions = {},
) {
  const reports: plue.DispatchErrorReport[] = [];
  const onError = (report: plue.DispatchErrorReport) => void reports.push(report);
  const dispatcher = dispatcherOf(source, { execute }, { onError, ...options });
  const result = await dispatcher.dispatch({ name: "t" }, { principal: "ann" });
  return { result, reports, dispatcher };
}

/** A dispatcher of a tool with the credential `hub`. `fields` and `options` replace the defaults. */
function dispatcherOf(
  sources: CredentialSource | readonly CredentialSource[],
  fields: object = {},
  options: plue.ToolDispatcherOptions = {},
): ToolDispatcher {
  const about = { name: "t", description: "T.", credentials: { hub: {} }, execute: () => "ran" };
  const registry = new ToolRegistry({ tools: [{ ...about, ...fields }] });
  return new ToolDispatcher(registry, {
    credentials: credentials(...[sources].flat()),
    ...options,
  });
}

function contentOf(result: plue.ToolResult): unknown {
  return result.ok ? result.content : result.error.code;
}

describe("credentials()", () => {
  it("gives a tool the credential of its caller, with the header, the scopes and the expiry", async () => {
    const { result } = await call(ours, (_, { credential }) => credential("hub").authorization);
    assertEquals(contentOf(result), "Bearer [credential]");
    const { result: other } = await call(
      ours,
      (_, { credential }) => credential("hub").token.split("").join("."),
    );
    assertEquals(contentOf(other), "h.u.b.-.o.f.-.a.n.n");
    const given = { token: TOKEN, scopes: ["repo"], expiresAt: 7 };
    const { result: about } = await call({ get: () => given }, (_, { credential }) => {
      const { name, scopes, expiresAt } = credential("hub");
      return { name, scopes: [...scopes ?? []], expiresAt: expiresAt ?? null };
    });
    assertEquals(contentOf(about), { name: "hub", scopes: ["repo"], expiresAt: 7 });
  });

  it("gives a task of a queue the credential of the tenant that has enqueued it", async () => {
    const got: unknown[] = [];
    const source: CredentialSource = {
      get: (_, { tenant, context }) => (got.push([tenant, context]), { token: TOKEN }),
    };
    const { dispatcher } = await call(source, () => "done", {
      rules: rules([{
        name: "not-b",
        decide: ({ tenant }) => tenant === "b" ? deny("no") : "allow",
      }]),
    });
    for (
      const [tenant, end, found] of [
        ["a", "done", [["a", { tenant: "a" }]]],
        [7, "done", [["7", { tenant: 7 }]]],
        ["b", "denied", []],
        [undefined, "done", [[undefined, undefined]]],
      ]
    ) {
      got.length = 0;
      const queue = taskQueue({ store: memoryCallStore() });
      const context = { tenant, of: "ann" };
      const task = await queue.enqueue(dispatcher, { name: "t" }, { principal: "ann", context });
      assert("id" in task);
      await queue.recover(dispatcher);
      await queue.idle();
      const { result } = await queue.get(task.id, { principal: "ann" }) ?? {};
      assertEquals([result && contentOf(result), got], [end, found]);
    }
  });

  it("removes a token from names of members, from URLs, and from JSON in a text", async () => {
    const token = 'key-"1\\2/3+4~5';
    const { result, reports } = await call(fromContext(() => token), (_, { credential }) => {
      const own = credential("hub").token;
      const json = JSON.stringify({ own });
      const urls = [encodeURIComponent(own), `${new URLSearchParams({ own })}`];
      return { [own]: [...urls, urls.join().toLowerCase(), json, json.replace("/", "\\/")] };
    });
    const [url, json] = ["own=[credential]", '{"own":"[credential]"}'];
    assertEquals(contentOf(result), {
      "[credential]": ["[credential]", url, `[credential],${url}`, json, json],
    });
    await call(fromContext(() => token), (_, { credential }) => {
      throw new Error(`?key=${encodeURIComponent(credential("hub").token)}`);
    }, { onError: (report) => void reports.push(report) });
    assertEquals(reports.map(({ error }) => (error as Error).message), ["?key=[credential]"]);
  });

  it("passes the principal, the tenant and the scopes to the source", async () => {
    let seen: Partial<CredentialRequest> = {};
    const source: CredentialSource = { get: (_, request) => (seen = request, { token: TOKEN }) };
    const dispatcher = dispatcherOf(source, { credentials: { hub: { scopes: ["repo"] } } });
    await dispatcher.dispatch({ name: "t" }, { principal: "ann", context: { tenant: 7 } });
    const { principal, tenant, scopes } = seen;
    assertEquals([principal, tenant, scopes], ["ann", "7", ["repo"]]);
  });

  it("tries the sources in their order", async () => {
    const tool = {
      credentials: { a: {}, b: {} },
      execute: (_: unknown, { credential }: plue.ToolContext) =>
        ["a", "b"].map((name) => credential(name).token.length),
    };
    const only = (wanted: string, token: string) =>
      fromContext((name) => name === wanted ? token : undefined);
    const dispatcher = dispatcherOf([only("b", "123456789"), only("a", "1234567")], tool);
    assertEquals(contentOf(await dispatcher.dispatch({ name: "t" })), [7, 9]);
  });

  it("gets no credential for a call that is invalid, denied by a rule, or not approved", async () => {
    let count = 0;
    const source = fromContext(() => `token-${++count}`);
    const denied = rules([{ name: "no", decide: () => deny("no") }]);
    for (const options of [{ rules: denied }, { approve: () => false }] as const) {
      const dispatcher = dispatcherOf(source, { requiresApproval: true }, options);
      assertEquals(contentOf(await dispatcher.dispatch({ name: "t" })), "denied");
      const wrong = await dispatcher.dispatch({ name: "t", arguments: { x: 1 } });
      assertEquals(contentOf(wrong), "invalid_arguments");
    }
    assertEquals(count, 0);
  });

  it("rejects a credential that the tool does not declare, or uses before it runs", async () => {
    const { result } = await call(ours, (_, { credential }) => credential("other").token);
    assertEquals(contentOf(result), "threw");
    const dispatcher = dispatcherOf(ours, {
      validate: (_: unknown, context: plue.ToolContext) => void context.credential("hub"),
    });
    assertEquals(contentOf(await dispatcher.dispatch({ name: "t" })), "threw");
  });

  it("fails a call of a tool with credentials if the dispatcher has no layer of credentials", async () => {
    const tool = { name: "t", description: "T.", credentials: { hub: {} }, execute: () => "ran" };
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }));
    const result = await dispatcher.dispatch({ name: "t" });
    assertEquals(contentOf(result), "unavailable");
    assertStringIncludes(JSON.stringify(result), "credentials");
  });

  it("removes tokens from results, failures and reported errors", async () => {
    const source = fromContext(() => TOKEN);
    const leaks: readonly ((token: string) => unknown)[] = [
      (token) => ({ deep: [{ token }] }),
      (token) => plue.ToolResult.error("threw", `401 for ${token}`),
      (token) => {
        throw Object.assign(new Error(`failed with ${token}`, { cause: new Error(token) }), {
          config: { headers: { authorization: `Bearer ${token}` } },
        });
      },
      (token) => {
        const cyclic: Record<string, unknown> = { token };
        cyclic["self"] = cyclic;
        throw Object.assign(new Error("request failed"), { cyclic });
      },
    ];
    for (const leak of leaks) {
      const { result, reports } = await call(
        source,
        (_, context) => leak(context.credential("hub").token) as never,
      );
      const shown = [
        JSON.stringify(result),
        ...reports.map(({ error }) =>
          `${(error as Error).stack} ${JSON.stringify(error)} ${(error as Error).cause}`
        ),
      ].join();
      assertFalse(shown.includes(TOKEN), shown);
      assertEquals(reports.length, leak.toString().includes("throw") ? 1 : 0);
    }
  });

  it("removes the token that the tool got, although its source has another one by then", async () => {
    const session = { token: TOKEN };
    const source = fromContext(() => ({
      get token() {
        return session.token;
      },
    }));
    const { result } = await call(source, (_, { credential }) => {
      const { token } = credential("hub");
      session.token = "another token";
      return token;
    });
    assertEquals(contentOf(result), "[credential]");
  });

  it("gives an object whose JSON and log do not contain the token", async () => {
    const { result } = await call(fromContext(() => TOKEN), (_, { credential }) => ({
      json: JSON.stringify(credential("hub")),
      keys: Object.values(credential("hub")).filter((value) => value !== undefined),
    }));
    assertEquals(contentOf(result), { json: '"[credential hub]"', keys: ["hub"] });
  });

  it("does not run a tool whose declaration is invalid", async () => {
    for (const hub of [{ scopes: "repo" }, { scope: [] }, { scopes: ["two words"] }, 7]) {
      const dispatcher = dispatcherOf(ours, { credentials: { hub } });
      assertEquals(contentOf(await dispatcher.dispatch({ name: "t" })), "threw");
    }
  });

  it("rejects values that are not sources", () => {
    assertThrows(() => credentials(), TypeError, "get of each source");
    assertThrows(() => credentials({} as never), TypeError, "get of each source");
    assertThrows(() => fromContext(7 as never), TypeError, "get must be a function");
  });
});

/** A source whose credential arrives when `permit` is called. */
class SlowSource implements CredentialSource {
  isPermitted = false;
  urls = 0;
  #permit: () => void = () => {};
  readonly permitted: Promise<void> = new Promise((resolve) => this.#permit = resolve);

  get() {
    if (this.isPermitted) return { token: TOKEN };
    const url = `https://hub.example/authorize?${++this.urls}`;
    return { url, arrived: () => this.permitted };
  }

  permit(): void {
    this.isPermitted = true;
    this.#permit();
  }
}

describe("credentials() without a credential", () => {
  const tool = {
    credentials: { hub: { scopes: ["repo"] } },
    execute: (_: unknown, { credential }: plue.ToolContext) => credential("hub").token.length,
  };

  it("shows the URL to a caller that can answer, waits, and continues by itself", async () => {
    const source = new SlowSource();
    const questions: plue.Question[] = [];
    const result = await dispatcherOf(source, tool).dispatch({ name: "t" }, {
      onQuestion(question) {
        questions.push(question);
        queueMicrotask(() => source.permit());
        return { action: "accept" };
      },
    });
    assertEquals(contentOf(result), TOKEN.length);
    assertEquals(questions, [{
      key: "credential.hub.1",
      kind: "authorization",
      message: 'Allow "t" to act as you at hub (repo)',
      url: "https://hub.example/authorize?1",
      resumes: true,
    }]);
  });

  it("requests the permission again if the answer comes after the expiry of the URL", async () => {
    const { now } = Date;
    let isPermitted = false;
    const source: CredentialSource = {
      get: () =>
        isPermitted ? { token: TOKEN } : {
          url: "https://hub.example/",
          // Nobody opens the first URL.
          arrived: (signal) =>
            new Promise((resolve, reject) => {
              if (isPermitted) resolve();
              signal.addEventListener("abort", () => reject(signal.reason));
            }),
        },
    };
    const keys: string[] = [];
    const result = await dispatcherOf(source, tool).dispatch({ name: "t" }, {
      onQuestion({ key }) {
        keys.push(key);
        isPermitted = keys.length > 1;
        Date.now = () => now() + 11 * 60_000;
        return { action: "accept" };
      },
    }).finally(() => Date.now = now);
    assertEquals([contentOf(result), keys], [TOKEN.length, [
      "credential.hub.1",
      "credential.hub.2",
    ]]);
  });

  it("suspends the call of another caller, which resumes by its ticket", async () => {
    const source = new SlowSource();
    const tickets = storedTickets(memoryCallStore());
    const dispatcher = dispatcherOf(source, tool, { tickets });
    const waiting = await dispatcher.dispatch({ name: "t" });
    assert(plue.isSuspended(waiting));
    const answers = { "credential.hub.1": { action: "accept" } } as const;
    // The ticket is used before the permission: the call waits for it.
    const resumed = dispatcher.resume(waiting.ticket, answers);
    source.permit();
    assertEquals(contentOf(await resumed), TOKEN.length);
  });

  it("requests a permission whose scopes are longer than a question", async () => {
    const scopes = Array.from({ length: 200 }, (_, index) => `https://hub.example/scope/${index}`);
    const tickets = storedTickets(memoryCallStore());
    const fields = { credentials: { hub: { scopes } } };
    const dispatcher = dispatcherOf(new SlowSource(), fields, { tickets });
    assertEquals(contentOf(await dispatcher.dispatch({ name: "t" })), "input_required");
  });

  it("denies a call whose caller declines, or has not given permission at ten URLs", async () => {
    const source = new SlowSource();
    const declined = await dispatcherOf(source, tool).dispatch({ name: "t" }, {
      onQuestion: () => ({ action: "decline" }),
    });
    assertEquals([contentOf(declined), source.urls], ["denied", 1]);

    const never: CredentialSource = {
      get: () => ({ url: "https://hub.example/", arrived: () => Promise.resolve() }),
    };
    let questions = 0;
    const result = await dispatcherOf(never, tool).dispatch({ name: "t" }, {
      onQuestion: () => (questions++, { action: "accept" }),
    });
    assertEquals([contentOf(result), questions], ["denied", 10]);
  });

  it("runs a call whose caller gives permission at the tenth URL", async () => {
    let urls = 0;
    const late: CredentialSource = {
      get: () =>
        ++urls > 10
          ? { token: TOKEN }
          : { url: "https://hub.example/", arrived: () => Promise.resolve() },
    };
    const result = await dispatcherOf(late, tool).dispatch({ name: "t" }, {
      onQuestion: () => ({ action: "accept" }),
    });
    assertEquals(contentOf(result), TOKEN.length);
  });

  it("fails a call whose caller cannot be asked", async () => {
    const result = await dispatcherOf(new SlowSource(), tool).dispatch({ name: "t" });
    assertEquals(contentOf(result), "input_unavailable");
  });
});
