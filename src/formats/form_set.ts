/**
 * A set of forms, as bits: there is one for each schema, and the first question about it is
 * whether a target takes all of them as they are.
 *
 * @module
 */

import { KEYWORD_FORMS, type KeywordForm } from "./keyword_forms.ts";

const FORMS = Object.keys(KEYWORD_FORMS) as readonly KeywordForm[];

/** The number of each form. Bit operations work on 32 bits. */
const WORD = 32;
const NUMBER: ReadonlyMap<KeywordForm, number> = new Map(
  FORMS.map((form, index) => [form, index]),
);
if (FORMS.length > 3 * WORD) throw new RangeError("Cannot number the forms: 3 words are too few");

/** A set of forms. */
export class FormSet {
  #first = 0;
  #second = 0;
  #third = 0;

  constructor(forms: Iterable<KeywordForm> = []) {
    for (const form of forms) this.add(form);
  }

  add(form: KeywordForm): this {
    const number = NUMBER.get(form) ?? 0;
    // A shift takes its count modulo 32.
    if (number < WORD) this.#first |= 1 << number;
    else if (number < 2 * WORD) this.#second |= 1 << number;
    else this.#third |= 1 << number;
    return this;
  }

  /** Adds the forms of another set. */
  addAll(other: FormSet): this {
    this.#first |= other.#first;
    this.#second |= other.#second;
    this.#third |= other.#third;
    return this;
  }

  has(form: KeywordForm): boolean {
    const number = NUMBER.get(form) ?? 0;
    const word = number < WORD ? this.#first : number < 2 * WORD ? this.#second : this.#third;
    return (word & (1 << number)) !== 0;
  }

  /** Whether the other set has all forms of this one. */
  isSubsetOf(other: FormSet): boolean {
    return (this.#first & ~other.#first) === 0 && (this.#second & ~other.#second) === 0 &&
      (this.#third & ~other.#third) === 0;
  }

  /** Whether the two have a form in common. */
  intersects(other: FormSet): boolean {
    return (this.#first & other.#first) !== 0 || (this.#second & other.#second) !== 0 ||
      (this.#third & other.#third) !== 0;
  }

  /** The forms, in the order of the tables. */
  *[Symbol.iterator](): Generator<KeywordForm, void> {
    for (const form of FORMS) if (this.has(form)) yield form;
  }
}
