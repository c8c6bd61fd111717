/**
 * The settings of `npm start`, from environment variables. Pure functions, so that they can be
 * tested.
 *
 * @module
 */

import { isRiskLevel, RISK_LEVELS, type RiskLevel } from "../../mod.ts";

/** What the server does. */
export interface ServeSettings {
  readonly port: number;
  readonly host: string;
  /** Whether only programs on this machine can reach the server. */
  readonly isLoopback: boolean;
  readonly maxRisk: RiskLevel;
  /** The role of every caller. Absent: they see the tools without roles. */
  readonly role: string | undefined;
  readonly workspace: string;
  /** Where the workspace's repository may keep its data outside of the workspace. */
  readonly gitFolders: readonly string[];
  /** The token that callers must send. Absent: none is needed. */
  readonly token: string | undefined;
}

/** A value that cannot be used. The message is one line, for the person who set it. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/**
 * Reads the settings. An empty variable counts as one that is not set.
 *
 * @param environment The variables.
 * @param currentFolder The workspace, if `PLUE_WORKSPACE` does not name one.
 * @param isFolder Whether a path names a folder that exists.
 * @throws {SettingsError} If a value cannot be used.
 */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  currentFolder: string,
  isFolder: (path: string) => boolean,
): ServeSettings {
  const value = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const wrong = (name: string, wanted: string): never => {
    throw new SettingsError(
      `Cannot serve: ${name} is ${JSON.stringify(value(name)?.slice(0, 100))}, and ${wanted}`,
    );
  };

  const portText = value("PORT") ?? "8787";
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : NaN;
  if (!(port <= 65_535)) wrong("PORT", "must be a whole number from 0 to 65535");

  const host = bareHost(value("HOST") ?? "127.0.0.1");
  const isNumbers = /^[\d.]+$/.test(host);
  if (!/^[A-Za-z0-9.:_-]{1,253}$/.test(host) || (isNumbers && !isIpv4(host))) {
    wrong("HOST", "must be a host name or an address to listen on, such as 127.0.0.1");
  }

  const maxRisk = value("PLUE_MAX_RISK") ?? "low";
  if (!isRiskLevel(maxRisk)) {
    return wrong("PLUE_MAX_RISK", `must be one of ${RISK_LEVELS.join(", ")}`);
  }

  const role = value("PLUE_ROLE");
  if (role !== undefined && !/^[\w.:-]{1,128}$/.test(role)) {
    wrong("PLUE_ROLE", "must be a role's name: letters, digits, _ . : or -");
  }

  const workspace = value("PLUE_WORKSPACE") ?? currentFolder;
  if (!isFolder(workspace)) wrong("PLUE_WORKSPACE", "must be a folder that exists");

  const gitFolder = value("PLUE_GIT_FOLDER");
  if (gitFolder !== undefined && !isFolder(gitFolder)) {
    wrong("PLUE_GIT_FOLDER", "must be a folder that exists");
  }
  const gitFolders = gitFolder === undefined ? [] : [gitFolder];

  // A message must not show the token, even a wrong one.
  const token = value("PLUE_TOKEN");
  if (token !== undefined && !/^[\x21-\x7e]{16,1024}$/.test(token)) {
    throw new SettingsError(
      "Cannot serve: PLUE_TOKEN must be 16 to 1024 visible ASCII characters without spaces",
    );
  }
  const isLoopback = isLoopbackHost(host);
  if (!isLoopback && token === undefined) {
    throw new SettingsError(
      `Cannot serve: HOST is ${
        JSON.stringify(host)
      }, which others can reach; set PLUE_TOKEN to a ` +
        "secret that callers must present, or leave HOST at 127.0.0.1",
    );
  }
  return { port, host, isLoopback, maxRisk, role, workspace, gitFolders, token };
}

/** The address as a URL, with a host that a client on this machine can use. */
export function urlOf(host: string, port: number): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${hostOf(reachable)}:${port}`;
}

/** A host as it is written in a URL: an IPv6 address in brackets. */
export function hostOf(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Whether only this machine can reach a server on that host. */
function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIpv4(host) && host.startsWith("127."));
}

/** Four numbers up to 255, each written in one way only. */
function isIpv4(host: string): boolean {
  return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(host);
}

function bareHost(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}
