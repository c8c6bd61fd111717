/**
 * JSON as SDKs have it in their types.
 *
 * @module
 */

/** A JSON value whose type says that it can change, because the SDKs take no other. */
export type WireValue =
  | null
  | boolean
  | number
  | string
  | WireValue[]
  | { [key: string]: WireValue };
