/** Ten tasks, each with the calls and the program of a model that makes no mistake. */

/** The id of a tool, and its arguments. */
export type TaskCall = readonly [id: string, args: Readonly<Record<string, unknown>>];

/** Makes the calls of one turn, and returns their results. */
// deno-lint-ignore no-explicit-any -- The results are those of any tool.
export type Turn = (calls: readonly TaskCall[]) => Promise<readonly any[]>;

export interface Task {
  /** The task in few words, for the table and the picture of the guide. */
  readonly title: string;
  readonly question: string;
  /** The searches of a model that does not see the list of tools. */
  readonly searches: readonly string[];
  /** The work as a sequence of turns. Calls that need no result of each other share a turn. */
  steps(turn: Turn): Promise<unknown>;
  /** The same work as a program. */
  readonly program: string;
}

const acme = { owner: "acme", repo: "web" };
const pages = [1, 2, 3].map((page) => ({ ...acme, state: "open", per_page: 100, page }));
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

const ALL_ISSUES = `const list = tools.github["issues_list-for-repo"];
const pages = await Promise.all([1, 2, 3].map((page) =>
  list({ owner: "acme", repo: "web", state: "open", per_page: 100, page })));
const issues = pages.flat();
`;

const LIST = "github:issues_list-for-repo";

export const TASKS: readonly Task[] = [
  {
    title: "count the issues without a comment",
    question: "How many open issues of acme/web have no comment?",
    searches: ["list issues of a repository"],
    steps: async (turn) =>
      (await turn(pages.map((page) => [LIST, page]))).flat()
        .filter(({ comments }) => comments === 0).length,
    program: `${ALL_ISSUES}return issues.filter(({ comments }) => comments === 0).length;`,
  },
  {
    title: "find the three people with the most issues",
    question: "Which three people have opened the most issues in acme/web?",
    searches: ["list issues of a repository"],
    steps: async (turn) => {
      const counts = new Map<string, number>();
      for (const { user } of (await turn(pages.map((page) => [LIST, page]))).flat()) {
        counts.set(user.login, (counts.get(user.login) ?? 0) + 1);
      }
      return [...counts].sort(([, a], [, b]) => b - a).slice(0, 3);
    },
    program: `${ALL_ISSUES}const counts = new Map();
for (const { user } of issues) counts.set(user.login, (counts.get(user.login) ?? 0) + 1);
return [...counts].sort(([, a], [, b]) => b - a).slice(0, 3);`,
  },
  {
    title: "close all duplicates",
    question: 'Close all issues of acme/web with the label "duplicate".',
    searches: ["list issues of a repository", "update an issue"],
    steps: async (turn) => {
      const [found] = await turn([[LIST, { ...acme, labels: "duplicate" }]]);
      const closed = await turn(found.map(({ number }: { number: number }) => [
        "github:issues_update",
        { ...acme, issue_number: number, state: "closed" },
      ]));
      return closed.length;
    },
    program: `const issue = { owner: "acme", repo: "web" };
const found = await tools.github["issues_list-for-repo"]({ ...issue, labels: "duplicate" });
for (const { number } of found) {
  await tools.github.issues_update({ ...issue, issue_number: number, state: "closed" });
}
return found.length;`,
  },
  {
    title: "label the stale issues",
    question: 'Label the issues of acme/web without a change for 110 days with "stale".',
    searches: ["list issues of a repository", "add labels to an issue"],
    steps: async (turn) => {
      const found = (await turn(pages.map((page) => [LIST, page]))).flat()
        .filter(({ updated_at }) => updated_at < "2026-08-11");
      await turn(found.map(({ number }) => [
        "github:issues_add-labels",
        { ...acme, issue_number: number, body: { labels: ["stale"] } },
      ]));
      return found.length;
    },
    program:
      `${ALL_ISSUES}const stale = issues.filter(({ updated_at }) => updated_at < "2026-08-11");
await Promise.all(stale.map(({ number }) => tools.github["issues_add-labels"]({
  owner: "acme", repo: "web", issue_number: number, body: { labels: ["stale"] },
})));
return stale.length;`,
  },
  {
    title: "find the pull requests without an approval",
    question: "Which open pull requests of acme/web have no approval?",
    searches: ["list pull requests", "list reviews of a pull request"],
    steps: async (turn) => {
      const [pulls] = await turn([["github:pulls_list", acme]]);
      const reviews = await turn(pulls.map(({ number }: { number: number }) => [
        "github:pulls_list-reviews",
        { ...acme, pull_number: number },
      ]));
      return pulls.map(({ number }: { number: number }) => number).filter((_: number, at: number) =>
        !reviews[at].some(({ state }: { state: string }) => state === "APPROVED")
      );
    },
    program: `const repo = { owner: "acme", repo: "web" };
const pulls = await tools.github.pulls_list(repo);
const open = await Promise.all(pulls.map(async ({ number }) => {
  const reviews = await tools.github["pulls_list-reviews"]({ ...repo, pull_number: number });
  return reviews.some(({ state }) => state === "APPROVED") ? [] : [number];
}));
return open.flat();`,
  },
  {
    title: "add up the stars of all repositories",
    question: "How many stars do the repositories of acme have together?",
    searches: ["list repositories of an organization"],
    steps: async (turn) =>
      (await turn([["github:repos_list-for-org", { org: "acme", per_page: 100 }]]))[0]
        .reduce(
          (sum: number, repo: { stargazers_count: number }) => sum + repo.stargazers_count,
          0,
        ),
    program:
      `const repos = await tools.github["repos_list-for-org"]({ org: "acme", per_page: 100 });
return repos.reduce((sum, repo) => sum + repo.stargazers_count, 0);`,
  },
  {
    title: "list the repositories without a license",
    question: "Which public repositories of acme have no license?",
    searches: ["list repositories of an organization"],
    steps: async (turn) =>
      (await turn([["github:repos_list-for-org", { org: "acme", per_page: 100 }]]))[0]
        .filter((repo: { license: unknown; private: boolean }) => !repo.license && !repo.private)
        .map(({ name }: { name: string }) => name),
    program:
      `const repos = await tools.github["repos_list-for-org"]({ org: "acme", per_page: 100 });
return repos.filter((repo) => !repo.license && !repo.private).map(({ name }) => name);`,
  },
  {
    title: "read the latest release of ten repositories",
    question: "What is the latest release of each of acme's repositories r1 to r10?",
    searches: ["latest release of a repository"],
    steps: async (turn) => {
      const found = await turn(
        numbers(10).map((number) => [
          "github:repos_get-latest-release",
          { owner: "acme", repo: `r${number}` },
        ]),
      );
      return found.map(({ tag_name }) => tag_name);
    },
    program: `const latest = tools.github["repos_get-latest-release"];
const repos = Array.from({ length: 10 }, (_, index) => "r" + (index + 1));
const found = await Promise.all(repos.map((repo) => latest({ owner: "acme", repo })));
return found.map(({ tag_name }) => tag_name);`,
  },
  {
    title: "count the lines of 20 files",
    question: "How many lines do the 20 files in the folder notes have together?",
    searches: ["read a file"],
    steps: async (turn) =>
      (await turn(numbers(20).map((number) => ["file-read", { path: `notes/${number}.txt` }])))
        .reduce((sum, { count }) => sum + count, 0),
    program: `let lines = 0;
for (let file = 1; file <= 20; file++) {
  lines += (await tools["file-read"]({ path: "notes/" + file + ".txt" })).count;
}
return lines;`,
  },
  {
    title: "replace a year in the files that have it",
    question: "Replace 2025 by 2026 in each file of the folder notes that has it.",
    searches: ["find text in files", "read a file", "write a file"],
    steps: async (turn) => {
      const [{ matches }] = await turn([["search-grep", { pattern: "2025", path: "notes" }]]);
      const paths = [...new Set<string>(matches.map(({ path }: { path: string }) => path))];
      const files = await turn(paths.map((path) => ["file-read", { path }]));
      await turn(files.map(({ path, content }) => [
        "file-write",
        { path, content: content.replaceAll("2025", "2026"), overwrite: true },
      ]));
      return paths.length;
    },
    program: `const { matches } = await tools["search-grep"]({ pattern: "2025", path: "notes" });
const paths = [...new Set(matches.map(({ path }) => path))];
for (const path of paths) {
  const { content } = await tools["file-read"]({ path });
  await tools["file-write"]({ path, content: content.replaceAll("2025", "2026"), overwrite: true });
}
return paths.length;`,
  },
];
