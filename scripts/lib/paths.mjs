// The paths of this repository, and the addresses of its files for the links of pages.

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const RUNTIMES = join(ROOT, "scripts", "runtimes");
/** Links to the pinned runtimes, for PATH. */
export const BIN = join(RUNTIMES, "bin");
/** Builds, by the digests of their sources. This folder is outside of the clone, for all clones. */
export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "plue");

/** Returns the address of the repository, and the version of the packages. */
export function repository() {
  const { version, repository } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return { version, address: repository.url.replace(/^git\+|\.git$/g, "") };
}

/** Returns the address of the text of a file, in the version of the packages. */
export function rawAddress(file) {
  const { version, address } = repository();
  const host = address.replace("//github.com/", "//raw.githubusercontent.com/");
  return `${host}/v${version}/${file}`;
}

/** Returns the address at which a person reads a file, in the version of the packages. */
export function pageAddress(file) {
  const { version, address } = repository();
  return isPicture(file) ? rawAddress(file) : `${address}/blob/v${version}/${file}`;
}

export const isPicture = (file) => [".webp", ".svg"].includes(extname(file));

/** Returns Markdown in which `replace` changed each relative link. Code has no links. */
export function replaceLinks(text, replace) {
  const toLink = (link) => /^([a-z]+:|#)/.test(link) ? link : replace(link);
  return text.split(/(^```.*?^```)/ms).map((part, at) =>
    at % 2 === 1 ? part : part
      .replaceAll(/\]\(([^)\s]+)\)/g, (_, link) => `](${toLink(link)})`)
      .replaceAll(/\bsrc="([^"]+)"/g, (_, link) => `src="${toLink(link)}"`)
  ).join("");
}
