/** GitHub's API with generated answers of the usual size, as tools. */

import { existsSync, readFileSync } from "node:fs";
import { importOpenApi } from "../../src/adapters/openapi/mod.ts";
import type { Tool } from "../../src/tool/mod.ts";

/** The document of `npm pack @octokit/openapi`, `generated/api.github.com.json`. */
const FILE = process.env["GITHUB_OPENAPI"] ??
  new URL("../../../shared/data/api.github.com.json", import.meta.url).pathname;

const DAY = 86_400_000;
const NOW = Date.parse("2026-11-29T00:00:00Z");
const PEOPLE = "ada bob cleo dan eve fay".split(" ");

const ago = (days: number): string => new Date(NOW - days * DAY).toISOString();

function user(index: number): object {
  const login = PEOPLE[index % PEOPLE.length] ?? "";
  const url = `https://api.github.com/users/${login}`;
  const links = "followers_url gists_url starred_url subscriptions_url organizations_url repos_url";
  return {
    ...{ login, id: 1_000 + index % PEOPLE.length, node_id: "MDQ6VXNlcjE=", url, type: "User" },
    avatar_url: `https://avatars.githubusercontent.com/u/${1_000 + index}?v=4`,
    ...Object.fromEntries(links.split(" ").map((name) => [name, `${url}/${name.slice(0, -4)}`])),
    site_admin: false,
  };
}

function issue(repo: string, index: number): object {
  const url = `https://api.github.com/repos/acme/${repo}/issues/${index}`;
  const name = index % 25 === 0 ? "duplicate" : "bug";
  return {
    ...{ url, id: 70_000 + index, node_id: "I_kwDOA", number: index, state: "open", locked: false },
    ...{ title: `The page ${index} does not load`, comments: index % 4, user: user(index * 7) },
    body: "When I open the page, I see nothing. It worked last week. ".repeat(3 + index % 3),
    labels: [{ id: 9, url: `${url}/labels`, name, color: "d73a4a", default: true }],
    ...{
      comments_url: `${url}/comments`,
      events_url: `${url}/events`,
      labels_url: `${url}/labels`,
    },
    ...{ created_at: ago(200 - index / 2), updated_at: ago(index % 120), closed_at: null },
    ...{ author_association: "NONE", assignee: null, assignees: [], milestone: null },
  };
}

function repository(index: number): object {
  const url = `https://api.github.com/repos/acme/r${index}`;
  const links = "keys teams hooks events branches tags blobs languages contributors commits merges";
  return {
    ...{ id: 500 + index, node_id: "R_kgDOA", name: `r${index}`, full_name: `acme/r${index}`, url },
    ...{ private: index % 3 === 0, owner: user(0), description: `The service ${index}.` },
    ...Object.fromEntries(links.split(" ").map((name) => [`${name}_url`, `${url}/${name}`])),
    ...{ stargazers_count: index * 11, forks_count: index, open_issues_count: index * 3 },
    ...{ archived: index % 7 === 0, default_branch: "main", pushed_at: ago(index * 20) },
    license: index % 4 === 0 ? null : { key: "mit", name: "MIT License", spdx_id: "MIT" },
  };
}

function pull(index: number): object {
  const url = `https://api.github.com/repos/acme/web/pulls/${index}`;
  return {
    ...{ url, id: 80_000 + index, number: index, state: "open", title: `Change ${index}` },
    ...{ user: user(index), body: "It makes the page faster. ".repeat(6), draft: index % 5 === 0 },
    ...{ created_at: ago(index), head: { ref: `b${index}`, sha: "a".repeat(40) } },
    base: { ref: "main", sha: "b".repeat(40), repo: repository(1) },
  };
}

function list<Item>(count: number, make: (index: number) => Item, query: URLSearchParams): Item[] {
  const size = Number(query.get("per_page") ?? 30);
  const from = (Number(query.get("page") ?? 1) - 1) * size;
  return Array.from(
    { length: Math.max(0, Math.min(size, count - from)) },
    (_, at) => make(from + at + 1),
  );
}

type Answer = (parts: RegExpExecArray, query: URLSearchParams, method: string) => unknown;

const ROUTES: readonly (readonly [RegExp, Answer])[] = [
  [/^\/repos\/acme\/(\w+)\/issues$/, ([, repo = ""], query) => {
    const label = query.get("labels");
    return label === null
      ? list(240, (index) => issue(repo, index), query)
      : list(9, (index) => issue(repo, index * 25), query);
  }],
  [
    /^\/repos\/acme\/(\w+)\/issues\/(\d+)\/labels$/,
    () => [{ id: 10, name: "stale", color: "eee" }],
  ],
  [/^\/repos\/acme\/(\w+)\/issues\/(\d+)$/, ([, repo = "", number]) => issue(repo, Number(number))],
  [/^\/orgs\/acme\/repos$/, (_, query) => list(60, repository, query)],
  [/^\/repos\/acme\/web\/pulls$/, (_, query) => list(12, pull, query)],
  [
    /^\/repos\/acme\/web\/pulls\/(\d+)\/reviews$/,
    ([, number]) =>
      Array.from({ length: Number(number) % 3 }, (_, index) => ({
        ...{ id: index, user: user(index), body: "Looks good to me. ".repeat(4) },
        ...{ state: index === 1 ? "APPROVED" : "COMMENTED", submitted_at: ago(index) },
      })),
  ],
  [/^\/repos\/acme\/(\w+)\/releases\/latest$/, ([, repo]) => ({
    ...{ id: 1, tag_name: `v1.${repo?.slice(1)}.0`, name: `Release of ${repo}`, draft: false },
    ...{ author: user(1), body: "Fixes and improvements. ".repeat(20), published_at: ago(9) },
  })],
];

/**
 * All of GitHub's operations as tools, or `undefined` if the document is absent. By default without
 * schemas of results, because the generated answers have only the usual fields.
 */
export async function githubTools({ returns = false } = {}): Promise<readonly Tool[] | undefined> {
  if (!existsSync(FILE)) return undefined;
  const { tools } = await importOpenApi(JSON.parse(readFileSync(FILE, "utf8")), {
    namespace: "github",
    returns,
    fetch: (request) => {
      const { method, url } = new Request(request);
      const { pathname, searchParams } = new URL(url);
      for (const [path, answer] of ROUTES) {
        const parts = path.exec(pathname);
        if (parts !== null) {
          return Promise.resolve(Response.json(answer(parts, searchParams, method)));
        }
      }
      return Promise.resolve(Response.json({ message: "Not Found" }, { status: 404 }));
    },
  });
  return tools;
}
