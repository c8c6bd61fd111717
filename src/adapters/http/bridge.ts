/**
 * Bridges between callers and their tools, each made once per toolset, and the target of a call
 * through a bridge.
 *
 * @module
 */

import type { Toolset } from "../../select/mod.ts";
import { atOnce, refuse, type Tool } from "../../tool/mod.ts";
import { readBridgeQuery } from "./query.ts";
import type { ToolRequest } from "./request.ts";
import { RequestError } from "./responses.ts";

/** Returns the tools for a request: the caller's toolset, or the bridge to it. */
export type ShowTools = (toolset: Toolset, throughBridge: boolean) => Toolset;

/**
 * Makes the function that shows tools.
 *
 * @param bridge Makes the bridge to a toolset. Without it, requests for a bridge are rejected.
 */
export function showThrough(bridge: ((toolset: Toolset) => Toolset) | undefined): ShowTools {
  const bridgeTo = bridge && bridgeOnce(bridge);
  return (toolset, throughBridge) => {
    if (!throughBridge) return toolset;
    if (bridgeTo !== undefined) return bridgeTo(toolset);
    throw new RequestError("This server has no bridge: the option bridge is not set");
  };
}

/**
 * Makes the function for the tools of a call whose request may have the query `bridge=1`.
 *
 * @param bridge Makes the bridge to a toolset: `createToolBridge`. Without it, requests for a
 * bridge are rejected.
 */
export function bridgeByQuery(
  bridge?: (toolset: Toolset) => Toolset,
): (request: ToolRequest) => Toolset {
  const show = showThrough(bridge);
  return ({ raw: { url }, toolset }) =>
    url.includes("?") ? show(toolset, readBridgeQuery(url)) : toolset;
}

/**
 * Makes the bridge to each toolset once.
 *
 * @param make Makes a bridge. If it throws, or does not return a toolset, the request fails.
 */
export function bridgeOnce(make: (toolset: Toolset) => Toolset): (toolset: Toolset) => Toolset {
  const bridges = new WeakMap<Toolset, Toolset>();
  return (toolset) => {
    let bridge = bridges.get(toolset);
    if (bridge === undefined) {
      bridge = atOnce(make(toolset));
      // The bridge to another toolset might reach what this caller must not.
      if (bridge?.bridge?.behind !== (toolset.bridge?.behind ?? toolset)) {
        refuse(
          "make a bridge",
          "the function must give the bridge to the toolset that it is given",
        );
      }
      bridges.set(toolset, bridge);
    }
    return bridge;
  };
}

/** The tool of a call. */
export interface CallTarget {
  readonly toolId: string;
  /** Absent if there is no such tool. */
  readonly tool: Tool | undefined;
  /** True if the call goes to this tool through a bridge. */
  readonly viaBridge: boolean;
}

/** Returns the tool of a call: through a bridge, its target. Logs and traces name the target. */
export function targetOf(
  toolset: Toolset,
  call: { readonly name: string; readonly arguments?: unknown },
): CallTarget {
  const { bridge } = toolset;
  const led = bridge?.lead(call);
  const { name } = led ?? call;
  const owner = led === undefined ? toolset : bridge?.behind;
  return {
    toolId: name,
    tool: owner?.resolve(name),
    viaBridge: led !== undefined && led !== call,
  };
}
