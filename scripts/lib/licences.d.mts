export function licencesOf(heading: string, files: readonly string[], root: string): string;
