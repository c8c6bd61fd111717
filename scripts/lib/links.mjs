// The addresses of the project's files, and the links of its pages.

import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { ROOT } from "./paths.mjs";

const { version, repository } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

/** The address of the repository. */
export const REPOSITORY = repository.url.replace(/^git\+|\.git$/g, "");

/** Returns the address of the text of a file, in the version of the packages. */
export function rawAddress(file) {
  const host = REPOSITORY.replace("//github.com/", "//raw.githubusercontent.com/");
  return `${host}/v${version}/${file}`;
}

/** Returns the address at which a person reads a file, in the version of the packages. */
export function pageAddress(file) {
  return isPicture(file) ? rawAddress(file) : `${REPOSITORY}/blob/v${version}/${file}`;
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
