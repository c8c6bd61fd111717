/** The MCP clients that `plue mcp` configures: their files, and the form of an entry. */

import { posix, win32 } from "node:path";
import { type CommandIo, usageError } from "./terminal.ts";

export type Entry = Readonly<Record<string, unknown>>;

export interface McpClient {
  readonly title: string;
  /** The member of the file that has the servers. */
  readonly member: string;
  /** The folder and the path of a user's file. */
  readonly user: readonly [folder: "home" | "config" | "xdg", path: string];
  /** The path of a project's file. By default, the client has none. */
  readonly project?: string;
  /** Further members of the entry of a program. */
  readonly program?: Entry;
  /** Makes the entry of a server at a URL. By default, the client only starts programs. */
  remote?(url: string): Entry;
}

const CLIENTS: Readonly<Record<string, McpClient>> = {
  "claude": {
    title: "Claude Code",
    member: "mcpServers",
    user: ["home", ".claude.json"],
    project: ".mcp.json",
    remote: (url) => ({ type: "http", url }),
  },
  "claude-desktop": {
    title: "Claude Desktop",
    member: "mcpServers",
    user: ["config", "Claude/claude_desktop_config.json"],
  },
  "cursor": {
    title: "Cursor",
    member: "mcpServers",
    user: ["home", ".cursor/mcp.json"],
    project: ".cursor/mcp.json",
    remote: (url) => ({ url }),
  },
  "vscode": {
    title: "Visual Studio Code",
    member: "servers",
    user: ["config", "Code/User/mcp.json"],
    project: ".vscode/mcp.json",
    program: { type: "stdio" },
    remote: (url) => ({ type: "http", url }),
  },
  "windsurf": {
    title: "Windsurf",
    member: "mcpServers",
    user: ["home", ".codeium/windsurf/mcp_config.json"],
    remote: (serverUrl) => ({ serverUrl }),
  },
  "zed": {
    title: "Zed",
    member: "context_servers",
    user: ["xdg", "zed/settings.json"],
    project: ".zed/settings.json",
    remote: (url) => ({ url }),
  },
};

export const MCP_CLIENTS: readonly string[] = Object.keys(CLIENTS);

/** Returns the path of the file in which a client stores a user's servers. */
export function configPath(
  client: string,
  { platform, env, home }: Pick<CommandIo, "env"> & Record<"platform" | "home", string>,
): string {
  const [folder, path] = clientOf(client).user;
  const { join } = platform === "win32" ? win32 : posix;
  if (folder === "home") {
    return join((client === "claude" && env["CLAUDE_CONFIG_DIR"]) || home, path);
  }
  if (platform === "win32") return join(env["APPDATA"] || join(home, "AppData/Roaming"), path);
  return platform === "darwin"
    ? join(home, folder === "config" ? "Library/Application Support" : ".config", path)
    : join(env["XDG_CONFIG_HOME"] || join(home, ".config"), path);
}

export function clientOf(name: string): McpClient {
  const client = CLIENTS[name];
  if (client !== undefined) return client;
  throw usageError(`Cannot find the client "${name}": it must be one of ${MCP_CLIENTS.join(", ")}`);
}
