export interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly skips: readonly string[];
}
export function countJunit(file: string): Count;
export function countWorkerd(output: string): Count;
export interface Verdict extends Count {
  readonly ms: number;
  readonly failures: readonly string[];
  readonly output: string;
}
export function judge(
  runtime: string,
  run: {
    readonly code: number;
    readonly stdout: string;
    readonly stderr: string;
    readonly output: string;
    readonly ms: number;
  },
  count: Count,
): Verdict;
