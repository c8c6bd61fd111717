/**
 * Tokens and whose they are. How long a look-up takes says nothing about how much of a guess was
 * right: digests are compared, to the last byte, with those of all tokens.
 *
 * @module
 */

const encoder = new TextEncoder();

interface Entry<Owner> {
  readonly digest: Uint8Array;
  readonly owner: Owner;
}

/** Finds the owners of tokens. */
export class TokenTable<Owner> {
  readonly #owners: ReadonlyMap<string, Owner>;
  #entries: readonly Entry<Owner>[] | undefined;

  constructor(owners: ReadonlyMap<string, Owner>) {
    this.#owners = new Map(owners);
  }

  /** Whose token it is. */
  async find(token: string): Promise<Owner | undefined> {
    // Not in the constructor: digests are made asynchronously. Twice, at worst, by the first two.
    const entries = this.#entries ??= await this.#digests();
    const given = await digest(token);
    let found: Owner | undefined;
    for (const { digest: wanted, owner } of entries) {
      if (equal(given, wanted)) found = owner;
    }
    return found;
  }

  #digests(): Promise<readonly Entry<Owner>[]> {
    return Promise.all(
      [...this.#owners].map(async ([token, owner]) => ({
        digest: await digest(token),
        owner,
      })),
    );
  }
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(
    await crypto.subtle.digest("SHA-256", encoder.encode(text)),
  );
}

/** Compares digests, which have one length. */
function equal(left: Uint8Array, right: Uint8Array): boolean {
  let difference = 0;
  for (let index = 0; index < left.length; index++) {
    difference |= (left[index] ?? 0) ^ (right[index] ?? 0);
  }
  return difference === 0;
}
