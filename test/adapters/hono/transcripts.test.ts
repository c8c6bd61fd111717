/**
 * Runs `transcripts.json`: requests to a handler with the tools of `sampleRegistry`, and the expected
 * responses, as data.
 */

import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import type { Caller, ToolHandlerOptions } from "@plue/tools/hono";
import data from "./transcripts.json" with { type: "json" };
import { assertMatches, BASE, handler, repeated } from "./support.ts";

interface Exchange {
  /** The method and the path. */
  readonly request: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent unchanged, any other value as JSON. `{x*9}` represents 9 times `x`. */
  readonly body?: unknown;
  readonly status: number;
  /** The expected members of the body. In strings, `…` represents any text. */
  readonly response?: unknown;
  /** The expected body, with no other members. */
  readonly exactly?: unknown;
  /** The expected ids of the listed tools. */
  readonly ids?: readonly string[];
  /** Some or all tools of an explanation: what removed them, or `seen`. */
  readonly verdicts?: Readonly<Record<string, string>>;
  readonly allVerdicts?: Readonly<Record<string, string>>;
  /** Headers of the response. */
  readonly sent?: Readonly<Record<string, string>>;
  /** Text that the response must not contain. */
  readonly lacks?: string;
}

interface Transcript {
  readonly title: string;
  readonly options?: ToolHandlerOptions;
  /** The callers, by their header `authorization`; "" is for requests without it. */
  readonly callers?: Readonly<Record<string, Caller>>;
  readonly exchanges: readonly Exchange[];
}

function requestOf({ request, headers, body }: Exchange): Request {
  const [method = "", path = ""] = repeated(request).split(" ");
  return new Request(BASE + path, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined
      ? {}
      : { body: repeated(typeof body === "string" ? body : JSON.stringify(body)) }),
  });
}

interface Explained {
  readonly id: string;
  readonly available: boolean;
  readonly removedBy?: string;
}

async function check(expected: Exchange, response: Response): Promise<void> {
  const text = await response.text();
  assertEquals(response.status, expected.status, text);
  const body = text === "" ? undefined : JSON.parse(text);
  if (expected.status >= 400) {
    assertEquals(response.headers.get("content-type"), "application/problem+json");
    assertEquals(body.status, expected.status);
  }
  const { exactly, ids, verdicts, allVerdicts } = expected;
  if ("response" in expected) assertMatches(body, expected.response);
  if ("exactly" in expected) assertEquals(body, exactly);
  if (ids !== undefined) assertEquals(body.tools.map(({ id }: Explained) => id), ids);
  if (verdicts !== undefined || allVerdicts !== undefined) {
    const found = Object.fromEntries(
      body.tools.map((
        { id, available, removedBy }: Explained,
      ) => [id, available ? "seen" : removedBy]),
    );
    if (verdicts !== undefined) assertMatches(found, verdicts);
    if (allVerdicts !== undefined) assertEquals(found, allVerdicts);
  }
  for (const [name, value] of Object.entries(expected.sent ?? {})) {
    assertEquals(response.headers.get(name), value);
  }
  if (expected.lacks !== undefined) assert(!text.includes(expected.lacks), text);
}

describe("a handler of sample tools", () => {
  // JSON has no narrower types.
  for (const { title, options, callers, exchanges } of data as unknown as readonly Transcript[]) {
    const app = handler({
      ...options,
      ...(callers === undefined ? {} : {
        authorize: ({ headers }) => callers[headers.get("authorization") ?? ""] as Caller,
      }),
    });
    for (const exchange of exchanges) {
      const { request, body = "" } = exchange;
      it(`${title}: ${request} ${JSON.stringify(body)}`.slice(0, 160), async () => {
        await check(exchange, await app.request(requestOf(exchange)));
      });
    }
  }
});
