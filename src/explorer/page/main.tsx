/** The page: its header, the list of tools and the main view. */

import { Fragment, type JSX, type RefObject, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isRefused, sessions, signIn, token } from "./api.ts";
import { calls } from "./calls.ts";
import { CallPage, Calls } from "./calls_page.tsx";
import { Code, runsPrograms } from "./code_page.tsx";
import { Icon } from "./icons.tsx";
import { isFinding, Palette } from "./palette.tsx";
import { Button, SHORTCUT, useKeys, useLoaded, Word } from "./parts.tsx";
import { hrefOf, route } from "./route.ts";
import { hasSources, heldCount, loadSources, SourcesPage } from "./sources.tsx";
import { Start } from "./start.tsx";
import { ToolPage } from "./tool_page.tsx";
import { isLive, revision, SEARCH_ID, start, ToolList } from "./tools.tsx";
import { Why } from "./why.tsx";

/** Changes between light and dark colours. Before the first change, the system decides. */
function toggleColours(): void {
  const { style } = document.documentElement;
  const isDark = style.colorScheme === ""
    ? matchMedia("(prefers-color-scheme: dark)").matches
    : style.colorScheme === "dark";
  style.colorScheme = isDark ? "light" : "dark";
}

/** The pages, each with the key that opens it after "g". The name of a page is also its icon. */
const PAGES = [
  ["start", "Start", "s"],
  ["tools", "Tools", "t"],
  ["code", "Code", "p"],
  ["why", "Why", "w"],
  ["calls", "Calls", "c"],
  ["sources", "Sources", "o"],
] as const;

type Page = typeof PAGES[number];

/** The page of programs exists if the service runs programs, the page of sources if it has a file. */
const isThere = ([page]: Page): boolean =>
  page === "code" ? runsPrograms.value : page !== "sources" || hasSources.value;

const KEYS = [
  [["Ctrl", "K"], "find a tool, page or call"],
  [["/"], "search the tools"],
  ...PAGES.map(([, name, key]) => [["g", key], `open the page ${name}`] as const),
  [["↑", "↓"], "move in the list of tools, and in the matrix"],
  [["Ctrl", "Enter"], "run the tool or the program"],
  [["?"], "this list"],
] as const;

function App(): JSX.Element {
  const shown = route.value;
  const tokens = useRef<HTMLDialogElement>(null);
  const keys = useRef<HTMLDialogElement>(null);
  // True after "g", which the key of a page follows.
  const goes = useRef(false);
  useKeys((event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    const isGoing = goes.current;
    goes.current = false;
    if (document.querySelector("dialog[open]") !== null) return;
    const search = document.getElementById(SEARCH_ID);
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as Element).tagName);
    const isShortcut = (ctrlKey || metaKey) && key === "k";
    if (!isShortcut && (isTyping || ctrlKey || metaKey || altKey)) return;
    const page = isGoing && PAGES.find(([, , own]) => own === key)?.[0];
    if (isShortcut || key === "/" && search === null) isFinding.value = true;
    else if (key === "/") search?.focus();
    else if (key === "?") keys.current?.showModal();
    else if (page) location.hash = hrefOf({ page });
    else {
      goes.current = key === "g";
      return;
    }
    event.preventDefault();
  });
  useLoaded(loadSources, [revision.value, sessions.value]);
  useEffect(() => {
    if (isRefused.value) tokens.current?.showModal();
  }, [isRefused.value]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <Rail onKeys={() => keys.current?.showModal()} />
      <div class="view">
        <header class="top">
          <Crumbs />
          <button type="button" class="find" onClick={() => (isFinding.value = true)}>
            <Icon name="search" />
            <span class="grow">Find a tool, page or call</span>
            <kbd aria-hidden="true">{SHORTCUT} K</kbd>
          </button>
          {isLive.value && <span class="small dim live">live</span>}
          <Button kind="quiet" onClick={() => tokens.current?.showModal()}>
            <Icon name="user" />
            {token.value === "" ? "Token" : "Token set"}
          </Button>
          <Button kind="quiet small" label="Light or dark" onClick={toggleColours}>
            <Icon name="theme" />
          </Button>
        </header>
        <div class="content">
          {shown.page === "start" && <Start />}
          {shown.page === "tools" && (
            <main id="main" tabIndex={-1} class="all">
              <ToolList />
            </main>
          )}
          {shown.page === "tool" && <ToolList />}
          {shown.page === "tool" && <ToolPage shown={shown} />}
          {shown.page === "code" && <Code />}
          {shown.page === "call" && <CallPage id={shown.id} />}
          {shown.page === "why" && <Why />}
          {shown.page === "calls" && <Calls />}
          {shown.page === "sources" && <SourcesPage />}
        </div>
      </div>
      <dialog ref={tokens} aria-label="Token">
        <TokenForm onDone={() => tokens.current?.close()} />
      </dialog>
      <Shortcuts dialog={keys} />
      <Palette
        pages={PAGES.filter(isThere).map(([page, name]) => ({
          ...{ name, icon: page, run: () => (location.hash = hrefOf({ page })) },
        }))}
        actions={[
          { name: "Enter a token", icon: "user", run: () => tokens.current?.showModal() },
          { name: "Change light and dark", icon: "theme", run: toggleColours },
          {
            name: "Show the keyboard shortcuts",
            icon: "help",
            run: () => keys.current?.showModal(),
          },
        ]}
      />
    </>
  );
}

function Rail({ onKeys }: { readonly onKeys: () => void }): JSX.Element {
  const { page: shown } = route.value;
  const current = { tool: "tools", call: "calls" }[shown as string] ?? shown;
  const counts: Partial<Record<Page[0], readonly [number, string]>> = {
    calls: [calls.value.filter(({ status }) => status === "waiting").length, "waiting"],
    sources: [heldCount.value, "held back"],
  };
  return (
    <nav class="rail" aria-label="Pages">
      <a class="brand" href="#/">
        <Word isSign />
      </a>
      {PAGES.filter(isThere).map(([page, name]) => (
        <a
          key={page}
          href={hrefOf({ page })}
          aria-current={page === current ? "page" : undefined}
        >
          <Icon name={page} />
          {name}
          <Count of={counts[page]} />
        </a>
      ))}
      <button type="button" onClick={onKeys}>
        <Icon name="help" />
        Keys
      </button>
    </nav>
  );
}

/** The number of things that wait for a person; nothing for 0. */
function Count({ of: [count, what] = [0, ""] }: {
  readonly of?: readonly [number, string] | undefined;
}): JSX.Element | null {
  return count === 0 ? null : (
    <span class="count">
      {count} <span class="hidden">{what}</span>
    </span>
  );
}

function Shortcuts({ dialog }: { readonly dialog: RefObject<HTMLDialogElement> }): JSX.Element {
  return (
    <dialog ref={dialog} aria-label="Keyboard shortcuts">
      <h2>Keyboard shortcuts</h2>
      <dl>
        {KEYS.map(([keys, effect]) => (
          <Fragment key={effect}>
            <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{effect}</dd>
          </Fragment>
        ))}
      </dl>
      <form method="dialog">
        <button class="button main" type="submit">Close</button>
      </form>
    </dialog>
  );
}

function Crumbs(): JSX.Element {
  const shown = route.value;
  const name = PAGES.find(([page]) => page === shown.page)?.[1];
  return (
    <div class="crumbs">
      {shown.page === "tool" && (
        <>
          <a href="#/tools">Tools</a>
          <Icon name="right" />
        </>
      )}
      <b class="cut">{shown.page === "tool" ? <code>{shown.id}</code> : name ?? "Call"}</b>
    </div>
  );
}

/** The fragment is the route, so a link to an element would change the route. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function TokenForm({ onDone }: { readonly onDone: () => void }): JSX.Element {
  const [typed, setTyped] = useState("");
  const canBeSent = [...typed].every((character) => character <= "\xff");
  return (
    <form
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        if (!canBeSent) return;
        signIn(typed.trim());
        setTyped("");
        onDone();
      }}
    >
      <h2>Token</h2>
      {isRefused.value && <p class="wrong">The service requires a token.</p>}
      <p>
        The page sends the token with each request. It stores the token in memory only, until the
        page is closed.
      </p>
      <label for="token">Bearer token</label>
      <input
        id="token"
        type="password"
        value={typed}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={!canBeSent}
        aria-describedby={canBeSent ? undefined : "token-wrong"}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      {!canBeSent && (
        <p class="wrong" id="token-wrong" role="alert">
          Cannot send this token: it has characters above U+00FF, which headers cannot contain.
        </p>
      )}
      <div class="row">
        <button class="button main" type="submit">Use it</button>
        <Button onClick={onDone}>Close</Button>
      </div>
    </form>
  );
}

start();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
