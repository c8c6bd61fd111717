/**
 * Which draft a schema is written in.
 *
 * @module
 */

/** The drafts that plue reads. */
export type Dialect = "draft-07" | "2020-12";
