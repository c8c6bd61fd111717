/**
 * What `plue doctor` says of one part.
 *
 * @module
 */

/** What was found out about one part. */
export interface Diagnosis {
  readonly part: string;
  /** `missing` is no fault: not everyone needs everything. */
  readonly state: "works" | "missing" | "broken";
  readonly detail: string;
}
