/**
 * The duration of one call of a small tool in a native host, in both hostings, as a multiple of the
 * system's bare round trip. Everything is measured in turns, in one run: pinned to one core, to
 * show the cost of the software, and not pinned, to show the cost of waking another core.
 */

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";

const ROOT = join(import.meta.dirname, "..");
const BUILD = join(ROOT, "ffi", "build");
const ROUNDS = 3;
const SINGLE = 20_000;
const EIGHT = 10_000;

/** The figures in one line of a program's output. */
interface Figures {
  readonly name: string;
  readonly meanUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly perSecond: number;
  readonly grownKb?: number;
}

/** The figures of a row, one per round. */
type Row = { readonly label: string; readonly rounds: Figures[] };

function build(): void {
  const steps = [
    ["make", "-s", "-C", join(ROOT, "ffi"), "all", "bench"],
    ["node", join(ROOT, "scripts", "build_native.mjs"), "--sidecar"],
  ];
  for (const [command = "", ...args] of steps) {
    const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`Cannot build what is measured: ${stderr}`);
  }
}

/** Runs a program, and reads the figures that it prints, by name. */
function run(command: readonly string[], isPinned: boolean): Map<string, Figures> {
  const [program = "", ...args] = isPinned ? ["taskset", "-c", "0", ...command] : command;
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: "utf8",
    env: {
      ...process.env,
      PLUE_SIDECAR: join(BUILD, "plue-sidecar"),
      PLUE_TOOLS: join(ROOT, "bench", "native", "tools.ts"),
    },
  });
  if (status !== 0) throw new Error(`${command.join(" ")} ended with ${status}: ${stderr}`);
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  return new Map(lines.map((line) => {
    const figures: Figures = JSON.parse(line);
    return [figures.name, figures];
  }));
}

const guest = join(ROOT, "bench", "native", "guest.ts");
const orders = `warm:5000 calls:1:${SINGLE} calls:8:${EIGHT} abort:300`;

/** The programs of each round, and the rows of their figures. */
const PROGRAMS = [
  { command: [join(BUILD, "bench", "raw"), "condvar", "20000"], rows: { condvar: "raw condvar" } },
  {
    command: [join(BUILD, "bench", "raw"), "socketpair", "20000"],
    rows: { socketpair: "raw socketpair" },
  },
  { command: ["bun", guest, "wake", "20000"], rows: { wake: "raw JSCallback wake" } },
  ...["callback", "fd"].map((wake) => ({
    command: ["bun", guest, wake, orders],
    rows: {
      "calls:1": `guest ${wake}, 1 thread`,
      "calls:8": `guest ${wake}, 8 threads`,
      abort: `guest ${wake}, abort`,
    },
  })),
  {
    command: [join(BUILD, "bench", "host"), orders],
    rows: {
      "calls:1": "sidecar, 1 thread",
      "calls:8": "sidecar, 8 threads",
      abort: "sidecar, abort",
    },
  },
];

function measure(isPinned: boolean): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const { command, rows: names } of PROGRAMS) {
      const figures = run(command, isPinned);
      for (const [name, label] of Object.entries(names)) {
        const found = figures.get(name);
        if (found === undefined) throw new Error(`${command.join(" ")} did not measure ${name}`);
        const row = rows.get(label) ?? { label, rounds: [] };
        rows.set(label, row);
        row.rounds.push(found);
      }
    }
  }
  return rows;
}

/** The median of the rounds' figures. */
function median(row: Row | undefined, field: "meanUs" | "p50Us" | "p99Us" | "perSecond"): number {
  const values = (row?.rounds ?? []).map((figures) => figures[field]).sort((a, b) => a - b);
  return values[values.length >> 1] ?? Number.NaN;
}

/** The raw limit that a row is compared with. */
function limitOf(label: string): string | undefined {
  if (!label.endsWith("1 thread")) return undefined;
  return label.startsWith("guest") ? "raw JSCallback wake" : "raw socketpair";
}

function print(title: string, rows: Map<string, Row>): void {
  console.log(`\n${title} (median of ${ROUNDS} rounds)`);
  console.log(
    `${"".padEnd(28)}${"mean us".padStart(10)}${"p50 us".padStart(10)}${"p99 us".padStart(10)}` +
      `${"per second".padStart(12)}   times the limit (of p50)`,
  );
  for (const row of rows.values()) {
    const limit = limitOf(row.label);
    const against = (field: "meanUs" | "p50Us"): string =>
      (median(row, field) / median(rows.get(limit ?? ""), field)).toFixed(2);
    console.log(
      row.label.padEnd(28) +
        median(row, "meanUs").toFixed(1).padStart(10) +
        median(row, "p50Us").toFixed(1).padStart(10) +
        median(row, "p99Us").toFixed(1).padStart(10) +
        median(row, "perSecond").toFixed(0).padStart(12) +
        (limit === undefined ? "" : `   ${against("meanUs")} (${against("p50Us")})`),
    );
  }
}

build();
const hasTaskset = spawnSync("taskset", ["--version"]).status === 0;
if (hasTaskset) print("Pinned to one core", measure(true));
else console.log("Not pinned: there is no taskset");
print("Not pinned", measure(false));
if (process.argv.includes("--memory")) {
  for (
    const [label, command] of [
      ["sidecar", [join(BUILD, "bench", "host"), "memory:1000000"]],
      ["guest", ["bun", guest, "callback", "memory:1000000"]],
    ] as const
  ) {
    const grown = run(command, false).get("memory")?.grownKb;
    console.log(`${label}: the host's process grew by ${grown} kB over 1,000,000 calls`);
  }
}
