// How libplue starts the sidecar's process and sees it out, in odd hosts.

import { describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { join } from "node:path";
import process from "node:process";
import { maybe } from "../support/skip.ts";
import { buildPrograms, PROGRAMS, run, said } from "./support.ts";

const FAKE_SIDECAR = join(PROGRAMS, "fake_sidecar");
const missing = buildPrograms();
const withCompiler = maybe(missing === undefined, missing ?? "");
const onLinux = maybe(
  missing === undefined && process.platform === "linux",
  missing ?? "it stands in for a system call of Linux",
);

async function pass(name: string): Promise<void> {
  const outcome = await run([join(PROGRAMS, "process"), FAKE_SIDECAR, name]);
  assertEquals(outcome.code, 0, said(outcome));
}

describe("the sidecar's process", () => {
  withCompiler(
    "leaves the descriptors 0 to 2 alone, whichever the host has closed",
    () => pass("no_stdio"),
  );

  onLinux("is given up if it does not begin in time", () => pass("never_exec"));

  onLinux("is given up if the system does not end it", () => pass("unkillable"));

  onLinux("takes its group with it where SIGCHLD is ignored", () => pass("group"));
});
