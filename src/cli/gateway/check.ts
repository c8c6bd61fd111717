/** `plue check plue.json`: finds the mistakes of a file without starting its sources. */

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { counted, parsedJson, type Terminal } from "../terminal.ts";
import { authorizeCallers } from "./callers.ts";
import { checkRules } from "./gateway.ts";
import { isPlueFile, readPlueFile } from "./file.ts";

/** Returns true if a source of `plue check` is a file of settings. */
export async function isSettings(path: string): Promise<boolean> {
  if (!path.endsWith(".json")) return false;
  if (basename(path) === "plue.json") return true;
  // A missing file is reported as a source.
  return isPlueFile(parsedJson(await readFile(path, "utf8").catch(() => "")));
}

/**
 * Prints the parts of a valid file.
 *
 * @throws {CommandError} If the file is invalid. The message has the line and the column.
 */
export async function checkSettings(
  path: string,
  terminal: Terminal,
): Promise<void> {
  const file = await readPlueFile(path, terminal.io.env);
  authorizeCallers(file);
  checkRules(file);
  const { tokens = {}, jwt = [] } = file.settings.callers ?? {};
  const parts = {
    sources: file.sources.map(({ name }) => name),
    tenants: [...file.tenants.keys()],
    callers: [...Object.keys(tokens), ...jwt.map(({ issuer }) => issuer)],
  };
  terminal.printResult({ valid: true, ...parts }, () => {
    const counts = Object.entries(parts).map(([name, { length }]) =>
      counted(length, name.slice(0, -1))
    );
    return `${path} is valid: ${counts.join(", ")}`;
  });
}
