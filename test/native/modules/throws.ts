/** A module of tools that cannot be loaded. */

throw new Error("the disk is on fire");
