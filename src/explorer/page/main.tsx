/** The page: its header, the list of tools and the main view. */

import { Fragment, type JSX, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { BASE, isRefused, signIn, token } from "./api.ts";
import { calls } from "./calls.ts";
import { Calls } from "./calls_page.tsx";
import { Icon } from "./icons.tsx";
import { Button, useKeys } from "./parts.tsx";
import { hrefOf, route } from "./route.ts";
import { ToolPage } from "./tool_page.tsx";
import { isLive, loading, SEARCH_ID, start, ToolList, tools } from "./tools.tsx";
import { Why } from "./why.tsx";

/** Changes between light and dark colours. Before the first change, the system decides. */
function toggleColours(): void {
  const { style } = document.documentElement;
  const isDark = style.colorScheme === ""
    ? matchMedia("(prefers-color-scheme: dark)").matches
    : style.colorScheme === "dark";
  style.colorScheme = isDark ? "light" : "dark";
}

/** The pages of the rail. The name of a page is also the name of its icon. */
const PAGES = [["tools", "Tools"], ["why", "Why"], ["calls", "Calls"]] as const;

const KEYS = [
  [["/"], "search the tools"],
  [["↑", "↓"], "move in the list of tools, and in the matrix"],
  [["Ctrl", "Enter"], "run the tool"],
  [["?"], "this list"],
] as const;

function App(): JSX.Element {
  const shown = route.value;
  const tokens = useRef<HTMLDialogElement>(null);
  const keys = useRef<HTMLDialogElement>(null);
  useKeys((event) => {
    const { tagName } = event.target as Element;
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(tagName);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") keys.current?.showModal();
    const search = document.getElementById(SEARCH_ID);
    if (event.key !== "/" || search === null) return;
    event.preventDefault();
    search.focus();
  });
  useEffect(() => {
    if (isRefused.value) tokens.current?.showModal();
  }, [isRefused.value]);
  const current = shown.page === "tool" ? "tools" : shown.page;
  const waiting = calls.value.filter(({ status }) => status === "waiting").length;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <nav class="rail" aria-label="Pages">
        <a class="brand" href="#/" aria-label="plue">
          <Sign />
        </a>
        {PAGES.map(([page, name]) => (
          <a
            key={page}
            href={hrefOf({ page })}
            aria-current={page === current ? "page" : undefined}
          >
            <Icon name={page} />
            {name}
            {page === "calls" && waiting > 0 && (
              <span class="count">
                {waiting} <span class="hidden">waiting</span>
              </span>
            )}
          </a>
        ))}
        <button type="button" onClick={() => keys.current?.showModal()}>
          <Icon name="help" />
          Keys
        </button>
      </nav>
      <div class="view">
        <header class="top">
          <Crumbs />
          {isLive.value && <span class="small dim live">live</span>}
          <Button kind="quiet" onClick={() => tokens.current?.showModal()}>
            <Icon name="user" />
            {token.value === "" ? "Token" : "Token set"}
          </Button>
          <Button kind="quiet small" label="Light or dark" onClick={toggleColours}>
            <Icon name="theme" />
          </Button>
        </header>
        <div class={`content page-${shown.page}`}>
          {(shown.page === "tools" || shown.page === "tool") && <ToolList />}
          {shown.page === "tools" && <Welcome />}
          {shown.page === "tool" && <ToolPage shown={shown} />}
          {shown.page === "why" && <Why />}
          {shown.page === "calls" && <Calls />}
        </div>
      </div>
      <dialog ref={tokens} aria-label="Token">
        <TokenForm onDone={() => tokens.current?.close()} />
      </dialog>
      <dialog ref={keys} aria-label="Keyboard shortcuts">
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
    </>
  );
}

function Sign(): JSX.Element {
  return (
    <svg class="sign" viewBox="0 0 22 24" aria-hidden="true">
      <path d="M3.5 12v11M3.5 11.5a8 8 0 1 0 16 0 8 8 0 1 0-16 0z" />
      <circle cx="11.5" cy="11.5" r="3.25" class="pin" />
    </svg>
  );
}

function Crumbs(): JSX.Element {
  const shown = route.value;
  const name = PAGES.find(([page]) => page === shown.page)?.[1];
  return (
    <div class="crumbs">
      {shown.page === "tool" && (
        <>
          <a href="#/">Tools</a>
          <Icon name="right" />
        </>
      )}
      <b>{shown.page === "tool" ? <code>{shown.id}</code> : name}</b>
    </div>
  );
}

/** The fragment is the route, so a link to an element would change the route. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Welcome(): JSX.Element {
  const state = loading.value;
  return (
    <main id="main" tabIndex={-1} class="welcome">
      <h1>Tools of this service</h1>
      {typeof state === "object" && <p class="wrong">{state.error}</p>}
      {state === "ready" && tools.value.size === 0 && (
        <p>You may not see any tools. Another token may allow some.</p>
      )}
      <p>
        Choose a tool to call it with a form, or to see it in the format of each provider. The list
        contains only tools that your token allows at <code>{BASE}</code>
      </p>
      <p>
        <a href="#/why">Why</a> explains which roles see which tools. <a href="#/calls">Calls</a>
        {" "}
        lists your calls and the metrics of the service.
      </p>
    </main>
  );
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
