/**
 * Many tools for few tokens: views of tools (`@plue/tools/finding`).
 *
 * @module
 */

export { viewOf, type ViewOptions } from "./view.ts";
