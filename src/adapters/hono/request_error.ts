/**
 * Why a request cannot be read as it is: 400.
 *
 * @module
 */

/** What is wrong with a request. The message is safe to send. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** Where in the body it is: a JSON Pointer. */
  readonly pointer: string | undefined;

  constructor(message: string, pointer?: string) {
    super(message);
    this.pointer = pointer;
  }
}
