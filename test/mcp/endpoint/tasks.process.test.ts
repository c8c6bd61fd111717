/** The official client for tasks, against the conformance tools on all four runtimes. */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  type ApplicationInputHandler,
  createTaskSessionFromClient,
} from "@modelcontextprotocol/ext-tasks/client";
import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { NAMES as RUNTIME_NAMES } from "../../../scripts/lib/runtimes.mjs";
import { messageIn } from "../../adapters/mcp/support.ts";
import { ROOT, serverOn } from "../servers.ts";

const REVISION = "2026-07-28";
const FRAMING = {
  protocolVersion: REVISION,
  clientInfo: { name: "test", version: "1.0.0" },
  clientCapabilities: {
    elicitation: { form: {} },
    extensions: { "io.modelcontextprotocol/tasks": {} },
  },
};

interface Sent {
  readonly method: string;
  readonly params: { readonly name?: string; readonly taskId?: string };
}

/** Sends the requests of the client for tasks, which the SDK's client does not support. */
async function dispatch(url: URL, request: unknown) {
  const { method, params } = request as Sent;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": method,
      "mcp-name": params.taskId ?? params.name ?? "",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await messageIn(response);
  return error === undefined
    ? { kind: "result" as const, result: result as never }
    : { kind: "error" as const, error };
}

function textOf(result: object): unknown {
  const { content } = result as { readonly content?: readonly { readonly text?: string }[] };
  return content?.[0]?.text;
}

for (const runtime of RUNTIME_NAMES) {
  describe(`the official client for tasks, on ${runtime}`, () => {
    const server = serverOn(runtime, join(ROOT, "test/support/conformance/worker.ts"));

    /** Calls a tool, and returns the questions and the result. */
    async function settle(name: string, args: Record<string, number | string> = {}) {
      const client = new Client(FRAMING.clientInfo, { versionNegotiation: { mode: "auto" } });
      await client.connect(new StreamableHTTPClientTransport(server.url));
      const questions: string[] = [];
      const answer: ApplicationInputHandler["handle"] = ({ params }, { delivery }) => {
        questions.push(`${delivery}: ${params?.["message"]}`);
        const { properties = {} } = params?.["requestedSchema"] as { properties?: object };
        const content = "name" in properties ? { name: "Ann" } : { confirm: true };
        // The tools ask by forms only.
        return Promise.resolve({ action: "accept", content } as never);
      };
      const session = createTaskSessionFromClient(client, {
        endpointId: "test",
        rawDispatch: (request) => dispatch(server.url, request),
        v2RequestFraming: FRAMING,
        onInputRequest: answer,
      });
      try {
        const execution = await session.callTool(name, args);
        const { outcome } = await execution.settle();
        const text = outcome.status === "completed" ? textOf(outcome.result) : undefined;
        return { kind: execution.kind, status: outcome.status, text, questions: questions.sort() };
      } finally {
        await session.close();
        await client.close();
      }
    }

    it("waits for the result of a task", async () => {
      assertEquals(
        await settle("slow_compute", { seconds: 0.5, label: "it" }),
        { kind: "task", status: "completed", text: "Computed it in 0.5 seconds.", questions: [] },
      );
    });

    it("answers the questions of a task", async () => {
      assertEquals(await settle("multi_input"), {
        kind: "task",
        status: "completed",
        text: "accept accept",
        questions: ["task-update: Go on?", "task-update: What is your name?"],
      });
    });

    it("answers before the task exists", async () => {
      assertEquals(await settle("test_tool_with_task"), {
        kind: "task",
        status: "completed",
        text: 'Hello, {"name":"Ann"}!',
        questions: ["request-retry: What is your name?"],
      });
    });

    it("receives a failed task", async () => {
      const { kind, status } = await settle("protocol_error_job");
      assertEquals([kind, status], ["task", "failed"]);
    });
  });
}
