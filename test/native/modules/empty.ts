/** A module that exports no registry. */

export const registry = { tools: [] };
