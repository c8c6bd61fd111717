/**
 * What a tool works on. The set is open: any name is a category; these eight are known to the
 * availability context (`withTerminal(false)` removes `terminal`, and so on).
 *
 * @module
 */

/** The categories that plue knows. */
export const KNOWN_CATEGORIES = [
  "filesystem",
  "terminal",
  "editor",
  "git",
  "workspace",
  "search",
  "network",
  "system",
] as const;

/** A category that plue knows. */
export type KnownToolCategory = (typeof KNOWN_CATEGORIES)[number];

/** What a tool works on: a known category, or a name of your own. */
export type ToolCategory = KnownToolCategory | (string & Record<never, never>);
