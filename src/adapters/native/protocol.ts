/**
 * The numbers of the protocol between libplue and the tools; `ffi/PROTOCOL.md` says what they mean.
 *
 * @module
 */

/** The protocol that this side speaks. */
export const PROTOCOL_VERSION = 1;

/** How many bytes stand before a frame's payload. */
export const HEADER_BYTES = 16;

/** How many of them the frame's length does not count: the length itself. */
export const LENGTH_BYTES = 4;

/** How large a frame may be, with its header. */
export const MAX_FRAME_BYTES: number = 256 * 1024 * 1024;

/** The length that stands for NULL in a block of strings. */
export const NULL_STRING = 0xffff_ffff;

/** What libplue sends. */
export const REQUEST = {
  execute: 1,
  abort: 2,
  shutdown: 3,
  configure: 4,
  ping: 5,
} as const;

/** What the tools side sends. */
export const REPLY = {
  result: 16,
  metadata: 17,
  tools: 18,
  hello: 19,
  failed: 20,
  pong: 21,
} as const;

/** One of {@linkcode REPLY}. */
export type ReplyType = typeof REPLY[keyof typeof REPLY];

/** The flag of an execute frame: the caller listens to metadata. */
export const WANTS_METADATA = 1;

/** The flag of a result frame: the call failed. */
export const CALL_FAILED = 1;

/** The flag of a failed frame: the host's configuration is at fault. */
export const CONFIGURATION_AT_FAULT = 1;

/** libplue sent what the protocol does not allow. Nothing that follows can be trusted. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
