/**
 * Where an API is.
 *
 * @module
 */

import { listIn, member, objectIn, textIn } from "../fields.ts";
import { splitTemplate } from "./template.ts";

/**
 * An address without a `/` at the end, if it is one that calls may go to: HTTP, with a host, and
 * without credentials, query or fragment.
 */
export function baseOf(address: string): string | undefined {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return undefined;
  }
  const { protocol, username, password, search, hash, href } = url;
  if (protocol !== "https:" && protocol !== "http:") return undefined;
  if (username !== "" || password !== "" || search !== "" || hash !== "") return undefined;
  return href.endsWith("/") ? href.slice(0, -1) : href;
}

/** The first address in a list of servers that calls may go to. */
export function serverOf(
  servers: unknown,
  variables: { readonly [name: string]: string },
): string | undefined {
  for (const server of Array.isArray(servers) ? servers : []) {
    const address = fillIn(server, variables);
    const base = address === undefined ? undefined : baseOf(address);
    if (base !== undefined) return base;
  }
  return undefined;
}

function fillIn(
  server: unknown,
  variables: { readonly [name: string]: string },
): string | undefined {
  const url = textIn(server, "url");
  if (url === undefined) return undefined;
  let address = "";
  for (const { text, name } of splitTemplate(url)) {
    if (name === undefined) {
      address += text;
      continue;
    }
    const variable = member(objectIn(server, "variables"), name);
    const value = Object.hasOwn(variables, name) ? variables[name] : textIn(variable, "default");
    const allowed = listIn(variable, "enum");
    if (value === undefined || (allowed !== undefined && !allowed.includes(value))) {
      return undefined;
    }
    address += value;
  }
  return address;
}
