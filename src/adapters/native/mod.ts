/**
 * Tools for native code (C, Swift, Rust, Python, Zig) through libplue. Either this runtime owns the
 * process and attaches itself to the library ({@linkcode attachNative}), or a native program owns
 * the process and starts this runtime as a child process ({@linkcode runSidecar}).
 *
 * @module
 */

export { attachNative, type AttachNativeOptions, type NativeAttachment } from "./attach_native.ts";
export { findLibplue, type FindLibplueOptions, type Libplue } from "./find_libplue.ts";
export type { Koffi, WakeKind } from "./guest_runtimes.ts";
export { runSidecar, type SidecarOptions } from "./run_sidecar.ts";
export type { ToolsModule } from "./tools_module.ts";
