// The licences of packages that a bundle contains, as one text to publish with the bundle.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PACKAGE = /^.*node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/;

/**
 * Collects the licences.
 *
 * @param heading The first line.
 * @param files The modules of the bundle. Modules outside `node_modules` are ignored.
 * @param root The folder to which their paths are relative.
 */
export function licencesOf(heading, files, root) {
  const folders = new Set(files.flatMap((file) => PACKAGE.exec(file)?.[0] ?? []));
  const licences = [...folders].sort().map((folder) => {
    const home = join(root, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
    const file = readdirSync(home).find((one) => /^licen[cs]e/i.test(one));
    const text = file === undefined
      ? `Licensed under ${license}`
      : readFileSync(join(home, file), "utf8").trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return [`${heading}\n`, ...licences].join(`\n${"-".repeat(80)}\n\n`);
}
