/** The records of a journal, as the logs SDK of OpenTelemetry exports them. */

import {
  InMemoryLogRecordExporter,
  LoggerProvider,
  SimpleLogRecordProcessor,
} from "@opentelemetry/sdk-logs";
import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { journal, otelSink, verifyJournal } from "../../src/adapters/journal/mod.ts";

describe("otelSink() with the SDK of OpenTelemetry", () => {
  it("exports a log record for each record, and its lines can be verified", async () => {
    const exporter = new InMemoryLogRecordExporter();
    const provider = new LoggerProvider({
      processors: [new SimpleLogRecordProcessor({ exporter })],
    });
    const sink = otelSink(provider.getLogger("journal"), () => provider.forceFlush());
    const records = journal({ sink, onFailure: "refuse-calls" });
    const registry = new ToolRegistry({
      tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
    });
    const dispatcher = new ToolDispatcher(registry, { layers: [records] });
    await dispatcher.dispatch({ name: "ping", callId: "c1" });
    await dispatcher.dispatch({ name: "none" });
    await records.close();

    const logs = exporter.getFinishedLogRecords();
    assertEquals(logs.map(({ eventName }) => eventName?.split(".").at(-1)), [
      "begin",
      "call",
      "call",
      "end",
    ]);
    const [, call, failed] = logs;
    assertEquals(call?.attributes, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "ping",
      "gen_ai.tool.call.id": "c1",
    });
    assertEquals([call?.severityNumber, failed?.severityNumber], [9, 13]);
    assertEquals(failed?.attributes["error.type"], "unknown_tool");
    const lines = logs.map(({ body }) => `${body}\n`).join("");
    const { ok, records: found } = await verifyJournal([new TextEncoder().encode(lines)]);
    assertEquals([ok, found], [true, 4]);
  });
});
