export interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly skips: readonly string[];
}
export function countJunit(file: string): Count;
export function countWorkerd(output: string): Count;
export function onlyFailures(output: string): string;
