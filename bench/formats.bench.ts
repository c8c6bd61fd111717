/**
 * The cost of an export of 1,000 tools, per target: the first export, with new schemas, and the
 * next export, which is cached, with and without a copy of its tools. For comparison:
 * `JSON.stringify` of the same schemas.
 */

import { do_not_optimize } from "mitata";
import { exportTools, listTargets, type TargetId } from "../src/formats/mod.ts";
import { makeTool, type Tool } from "../src/tool/mod.ts";

const COUNT = 1_000;
const ROUNDS = 7;

/**
 * Tools with typical schemas: optional properties, an enum, a nested object, a list; one tool in
 * ten is harder.
 */
function makeTools(): readonly Tool[] {
  return Object.freeze(Array.from({ length: COUNT }, (_, number) =>
    makeTool({
      name: `tool_${number}`,
      namespace: `space_${number % 20}`,
      description: `Does thing number ${number}, and says how it went.`,
      parameters: {
        type: "object",
        properties: {
          path: { type: "string", description: "Where to do it.", minLength: 1 },
          limit: { type: "integer", minimum: 1, maximum: 100, default: 10 },
          mode: { type: "string", enum: ["fast", "exact"] },
          filter: {
            type: "object",
            properties: { since: { type: "string", format: "date-time" } },
            additionalProperties: false,
          },
          labels: { type: "array", items: { type: "string" }, maxItems: 10 },
          ...(number % 10 === 0
            ? { target: { oneOf: [{ type: "string" }, { $ref: "#/$defs/place" }] } }
            : {}),
        },
        required: ["path"],
        ...(number % 10 === 0
          ? {
            $defs: {
              place: {
                type: "object",
                properties: { line: { type: "integer", exclusiveMinimum: 0 } },
                required: ["line"],
              },
            },
          }
          : {}),
      },
    })));
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function milliseconds(run: () => unknown): number {
  const start = performance.now();
  do_not_optimize(run());
  return performance.now() - start;
}

const AGAIN = 1_000_000;

const COPIES = 50;

function measure(
  target: TargetId,
): { readonly first: number; readonly again: number; readonly copy: number } {
  const firsts: number[] = [];
  let list: readonly Tool[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    list = makeTools();
    firsts.push(milliseconds(() => exportTools(list, target)));
  }
  const again = milliseconds(() => {
    for (let index = 0; index < AGAIN; index++) do_not_optimize(exportTools(list, target));
  });
  const copies = Array.from(
    { length: COPIES },
    () => milliseconds(() => exportTools(list, target).tools),
  );
  return { first: median(firsts), again: again / AGAIN * 1e6, copy: median(copies) };
}

// The first export of a process also includes the compilation of the exporter's own code.
for (const { id } of listTargets()) measure(id);

const floor = median(Array.from({ length: ROUNDS }, () => {
  const list = makeTools();
  return milliseconds(() => JSON.stringify(list.map((tool) => tool.parameters)));
}));
console.log(`floor: JSON.stringify of ${COUNT} schemas   ${floor.toFixed(2)} ms\n`);
console.log(
  `${"target".padEnd(24)}${"first".padStart(10)}${"x floor".padStart(9)}${"again".padStart(10)}` +
    "with its tools".padStart(16),
);
for (const { id } of listTargets()) {
  const { first, again, copy } = measure(id);
  console.log(
    id.padEnd(24) + `${first.toFixed(2)} ms`.padStart(10) + (first / floor).toFixed(1).padStart(9) +
      `${again.toFixed(0)} ns`.padStart(10) + `${copy.toFixed(2)} ms`.padStart(16),
  );
}
