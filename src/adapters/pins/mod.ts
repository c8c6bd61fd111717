/**
 * Pins: imported tools that change are hidden until they are approved.
 *
 * @module
 */

export { toolPins, type ToolPinsOptions } from "./pins.ts";
export { fileStore, memoryStore, type PinStore } from "./store.ts";
export type { HeldTool, ImportPins, PinChange, PinGrade, PinnedImport } from "../../formats/mod.ts";
