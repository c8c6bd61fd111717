/**
 * Finds the processes of one call by a mark in their environment, also after they moved to another
 * process group, session or parent. A guard does the same for all calls when this process has
 * ended, however it ended. On Linux only; elsewhere none are found.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { errorCode } from "./refusal.ts";

const PAUSE_MS = 5;
/** During `exec` a process shows no environment for a moment, so one empty scan is not enough. */
const CLEAN_SCANS = 2;
/** How many scans to wait for the environment of a process, which may have none at all. */
const UNCLEAR_SCANS = 40;
/**
 * How long to wait for killed processes. They end when they next get to run, which takes a while on
 * a busy machine, and may never come for one that the kernel holds.
 */
const GIVE_UP_MS = 30_000;

/** Marks the processes of this run. */
const RUN = crypto.randomUUID();

/** Reads until this process has ended, and kills what bears the mark until a while has gone by. */
const GUARD = `
while read -r _; do :; done
clean=0
while [ "$clean" -lt 5 ]; do
  found=$(grep -lsF "PLUE_CALL=$1/" /proc/[0-9]*/environ) || clean=$((clean + 1))
  for file in $found; do
    clean=0
    pid=\${file#/proc/}
    kill -KILL "\${pid%/environ}"
  done
  sleep 0.1
done
`;
let guard: ChildProcess | undefined;

/** A new mark for a process and its children, as the variables to start it with. */
export function newMark(): { readonly PLUE_CALL: string } {
  if (process.platform === "linux") guard ??= startGuard();
  return { PLUE_CALL: `${RUN}/${crypto.randomUUID()}` };
}

/**
 * Starts the guard. It has a session of its own, which signals to this one's group do not reach.
 * Where it cannot be started, commands end with their calls only.
 */
function startGuard(): ChildProcess | undefined {
  try {
    const child = spawn("sh", ["-c", GUARD, "sh", RUN], {
      cwd: "/",
      env: { PATH: process.env["PATH"] },
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.once("error", () => undefined);
    child.once("exit", () => guard = undefined);
    child.stdin?.on("error", () => undefined);
    // This process may end while the guard runs.
    child.unref();
    (child.stdin as Partial<Socket> | null)?.unref?.();
    return child;
  } catch {
    // Deno throws where it may not run a shell.
    return undefined;
  }
}

/** When a process was started, in the kernel's ticks since boot; 0 if that cannot be told. */
export function startTime(pid: number | undefined): number {
  if (process.platform !== "linux" || pid === undefined) return 0;
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "latin1")).startTime;
  } catch {
    return 0;
  }
}

/**
 * Kills the processes that bear the mark, and waits until they have ended.
 *
 * @param mark The value of `PLUE_CALL`.
 * @param since The start time of the oldest process that can bear it.
 */
export async function killMarked(mark: string, since: number): Promise<void> {
  if (process.platform !== "linux") return;
  const killed = new Set<number>();
  const end = performance.now() + GIVE_UP_MS;
  let clean = 0;
  let unclear = 0;
  while (clean < CLEAN_SCANS && unclear < UNCLEAR_SCANS && performance.now() < end) {
    const before = killed.size;
    const found = await scan(mark, since, killed);
    clean = found === "none" ? clean + 1 : 0;
    unclear = found === "unclear" ? unclear + 1 : 0;
    // A process that was just found may have started others: look again at once.
    if (killed.size === before) await delay(PAUSE_MS);
  }
}

/**
 * Kills the processes that bear the mark and adds them to `killed`.
 *
 * @returns Whether there are some, or some that have not ended yet, or some that may bear it.
 */
async function scan(
  mark: string,
  since: number,
  killed: Set<number>,
): Promise<"some" | "unclear" | "none"> {
  let isUnclear = false;
  let isThere = false;
  for (const name of await readdir("/proc").catch(() => [])) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const environment = await environmentOf(pid);
    if (environment?.split("\0").includes(`PLUE_CALL=${mark}`) === true) {
      isThere = true;
      killed.add(pid);
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    } else if (environment === "" && await mayBearMark(pid, since)) {
      if (killed.has(pid)) isThere = true;
      else isUnclear = true;
    }
  }
  return isThere ? "some" : isUnclear ? "unclear" : "none";
}

/**
 * The environment of a process; `""` if it has none at this moment, as in the middle of starting
 * and of ending; `undefined` if it is another user's.
 */
async function environmentOf(pid: number): Promise<string | undefined> {
  try {
    return await readFile(`/proc/${pid}/environ`, "latin1");
  } catch (error) {
    return ["EACCES", "EPERM"].includes(errorCode(error) ?? "") ? undefined : "";
  }
}

async function mayBearMark(pid: number, since: number): Promise<boolean> {
  try {
    const stat = parseStat(await readFile(`/proc/${pid}/stat`, "latin1"));
    return !stat.hasEnded && !stat.isOfKernel && stat.startTime >= since;
  } catch {
    return false;
  }
}

/** Flag of the kernel's own threads, which have no environment. */
const PF_KTHREAD = 0x0020_0000;

/** The command's name is in brackets, and may hold brackets and spaces itself. */
function parseStat(text: string): {
  readonly hasEnded: boolean;
  readonly isOfKernel: boolean;
  readonly startTime: number;
} {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return {
    hasEnded: fields[0] === "Z" || fields[0] === "X",
    isOfKernel: (Number(fields[6]) & PF_KTHREAD) !== 0,
    startTime: Number(fields[19]),
  };
}
