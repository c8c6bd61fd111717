/**
 * Finds the processes of one call by a mark in their environment, wherever they moved: another
 * process group, another session, another parent. Linux only; elsewhere nothing is found.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { errorCode } from "./refusal.ts";

/** A process that starts another one while it is looked for needs a second look. */
const MAX_ROUNDS = 40;
const PAUSE_MS = 5;
/** After how many looks in a row at which nothing was found there is nothing. */
const CLEAN_ROUNDS = 2;

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
 * Kills the processes that bear the mark, until there are none.
 *
 * @param mark The variable, as `NAME=value`.
 * @param since The start time of the oldest process that can bear it.
 */
export async function killMarked(mark: string, since: number): Promise<void> {
  if (process.platform !== "linux") return;
  // A process that becomes another program shows neither environment for a moment, so one look at
  // which nothing was found is not believed.
  let clean = 0;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { found, unclear } = await scan(mark, since);
    clean = found || unclear ? 0 : clean + 1;
    if (clean === CLEAN_ROUNDS) return;
    if (!found) await delay(PAUSE_MS);
  }
}

async function scan(
  mark: string,
  since: number,
): Promise<{ readonly found: boolean; readonly unclear: boolean }> {
  let found = false;
  let unclear = false;
  for (const name of await readdir("/proc").catch(() => [])) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const environment = await environmentOf(pid);
    if (environment?.split("\0").includes(mark) === true) {
      found = true;
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    } else if (environment === "") unclear ||= await mayBearMark(pid, since);
  }
  return { found, unclear };
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
