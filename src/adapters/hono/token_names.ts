/**
 * Names for callers of whom nothing is known but their token.
 *
 * @module
 */

/** How many names are kept. The oldest gives way. */
const MAX_NAMES = 1_024;

const encoder = new TextEncoder();

/** Names tokens by their digests: the same token has the same name in every process. */
export class TokenNames {
  readonly #names = new Map<string, string>();

  /** `token:` and 32 hexadecimal digits, from which the token cannot be told. */
  async of(token: string): Promise<string> {
    let name = this.#names.get(token);
    if (name !== undefined) return name;
    const digest = await crypto.subtle.digest("SHA-256", encoder.encode(token));
    const hex = [...new Uint8Array(digest, 0, 16)]
      .map((byte) => byte.toString(16).padStart(2, "0"));
    name = `token:${hex.join("")}`;
    if (this.#names.size >= MAX_NAMES) {
      this.#names.delete(this.#names.keys().next().value as string);
    }
    this.#names.set(token, name);
    return name;
  }
}
