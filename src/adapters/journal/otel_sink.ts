/** A sink that sends the records of a journal to OpenTelemetry. */

import { checkPort } from "../../tool/mod.ts";
import { type JournalSink, readRecord } from "./sink.ts";

/** The part of a logger of OpenTelemetry that is used: `logs.getLogger("journal")` of its API. */
export interface OpenTelemetryLogger {
  emit(record: {
    readonly eventName: string;
    readonly timestamp: number;
    readonly severityNumber: number;
    readonly body: string;
    readonly attributes: { readonly [name: string]: string };
  }): void;
}

/** `SeverityNumber.INFO` and `WARN` of the API, which is not imported. */
const INFO = 9;
const WARN = 13;

/**
 * Sends each record to OpenTelemetry as a log record: its body is the line of the journal, and a
 * failed call is a warning. Nothing can be read back, so that each process begins a new chain.
 *
 * @example Usage
 * ```ts ignore
 * const sink = otelSink(logs.getLogger("journal"), () => provider.forceFlush());
 * ```
 *
 * @param flush Exports the emitted records. If it rejects, they are emitted again.
 * @throws {TypeError} If the logger has no `emit`.
 */
export function otelSink(logger: OpenTelemetryLogger, flush?: () => Promise<void>): JournalSink {
  const port: OpenTelemetryLogger = Object(logger);
  checkPort("emit a journal", "logger", port, ["emit"]);
  return {
    async append(lines) {
      for (const line of lines) {
        const { kind = "call", time = 0, tool, callId, outcome = "ok" } = readRecord(line) ?? {};
        // Awaited, because TypeScript also accepts an async function.
        await logger.emit({
          eventName: `plue.journal.${kind}`,
          timestamp: time,
          severityNumber: outcome === "ok" ? INFO : WARN,
          body: line,
          attributes: {
            ...(tool !== undefined && {
              "gen_ai.operation.name": "execute_tool",
              "gen_ai.tool.name": tool,
            }),
            ...(callId !== undefined && { "gen_ai.tool.call.id": callId }),
            ...(outcome !== "ok" && { "error.type": outcome }),
          },
        });
      }
      await flush?.();
    },
    async *pages() {},
  };
}
