/** `plue serve --open`: the page in a browser. */

import { spawn } from "node:child_process";
import process from "node:process";
import type { Terminal } from "../terminal.ts";

const OPENERS: { readonly [platform: string]: readonly string[] } = {
  darwin: ["open"],
  win32: ["cmd", "/d", "/c", "start", ""],
};

/** Opens the page with the opener of the platform. If that fails, prints the address instead. */
export function openPage(url: string, terminal: Terminal): void {
  const [opener = "", ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const print = (): void => terminal.note(`Cannot open a browser: open ${url} yourself`);
  const child = spawn(opener, [...args, url], { stdio: "ignore", detached: true });
  child.once("error", print).once("exit", (code) => void (code !== 0 && print()));
  child.unref();
}
