/** The palette, which finds tools, pages, calls and actions by parts of their names. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { calls } from "./calls.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Id, Risk } from "./parts.tsx";
import { hrefOf, hrefOfCall } from "./route.ts";
import { type ListedTool, tools } from "./tools.tsx";

/** A page or an action. */
export interface Command {
  readonly name: string;
  readonly icon: IconName;
  readonly run: () => void;
}

interface Item {
  readonly key: string;
  readonly content: JSX.Element;
  readonly run: () => void;
}

const MAX_TOOLS = 8;
const MAX_CALLS = 4;

/** True while the palette is open. */
export const isFinding = signal(false);

export function Palette({ pages, actions }: {
  readonly pages: readonly Command[];
  readonly actions: readonly Command[];
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = isFinding.value;
  // A layout effect: the keys that follow the shortcut belong to the input.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
  }, [isOpen]);
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find a tool, page or call"
      onClose={() => (isFinding.value = false)}
    >
      {isOpen && <Finder {...{ pages, actions }} onDone={() => dialog.current?.close()} />}
    </dialog>
  );
}

function Finder({ pages, actions, onDone }: {
  readonly pages: readonly Command[];
  readonly actions: readonly Command[];
  readonly onDone: () => void;
}): JSX.Element {
  const id = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const words = text.trim().toLowerCase();
  const groups = [
    ["Tools", foundTools(words).map(itemOfTool)],
    ["Pages", foundIn(pages, words).map(itemOf)],
    ["Calls", words === "" ? [] : foundCalls(words)],
    ["Actions", foundIn(actions, words).map(itemOf)],
  ] as const;
  const items = groups.flatMap(([, own]) => own);
  const chosen = items[at];
  const open = (item: Item): void => {
    onDone();
    item.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && chosen !== undefined) open(chosen);
    else if (step === undefined || items.length === 0) return;
    else setAt((at + step + items.length) % items.length);
    event.preventDefault();
  };
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Find a tool, page or call"
        placeholder="Find a tool, page or call"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={chosen && `${id}-${at}`}
        autocomplete="off"
        spellcheck={false}
        value={text}
        ref={focusAtOnce}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={id} class="hits" role="listbox" aria-label="Found">
        {groups.map(([name, own]) =>
          own.length > 0 && (
            <div key={name} role="group" aria-label={name}>
              <p class="small faint" aria-hidden="true">{name}</p>
              {own.map((item) => {
                const index = items.indexOf(item);
                return (
                  <div
                    key={item.key}
                    id={`${id}-${index}`}
                    class="hit"
                    role="option"
                    aria-selected={index === at}
                    onMouseMove={() => setAt(index)}
                    onClick={() => open(item)}
                  >
                    {item.content}
                  </div>
                );
              })}
            </div>
          )
        )}
      </div>
      <p class="small dim pad" role="status">
        {items.length === 0 ? "Nothing is found." : `${items.length} found`}
      </p>
    </>
  );
}

/** A stable function: Preact calls it once for each input. */
function focusAtOnce(input: HTMLInputElement | null): void {
  input?.focus();
}

/** Returns the tools that contain the words: in their name, their id, or else their texts. */
function foundTools(words: string): readonly ListedTool[] {
  const ranked: ListedTool[][] = [[], [], []];
  for (const tool of tools.value.values()) {
    const id = tool.id.toLowerCase();
    const rank = id.slice(id.indexOf(":") + 1).startsWith(words) ? 0 : id.includes(words) ? 1 : 2;
    const isFound = rank < 2 ||
      `${tool.title ?? ""}\n${tool.description}`.toLowerCase().includes(words);
    if (isFound) ranked[rank]?.push(tool);
    if ((ranked[0]?.length ?? 0) >= MAX_TOOLS) break;
  }
  return ranked.flat().slice(0, MAX_TOOLS);
}

function itemOfTool({ id, title, description, risk }: ListedTool): Item {
  return {
    key: id,
    content: (
      <>
        <Risk level={risk} isBare />
        <Id id={id} />
        <span class="about cut">{title ?? description}</span>
      </>
    ),
    run: () => (location.hash = hrefOf({ page: "tool", id, view: "try" })),
  };
}

function foundIn(commands: readonly Command[], words: string): readonly Command[] {
  return commands.filter(({ name }) => name.toLowerCase().includes(words));
}

function itemOf({ name, icon, run }: Command): Item {
  const content = (
    <>
      <Icon name={icon} />
      {name}
    </>
  );
  return { key: name, content, run };
}

function foundCalls(words: string): readonly Item[] {
  return calls.value
    .filter(({ tool }) => tool.toLowerCase().includes(words))
    .slice(0, MAX_CALLS)
    .map((call) => ({
      key: call.callId,
      content: (
        <>
          <Icon name="calls" />
          <Id id={call.tool} />
          <span class="about cut">
            {new Date(call.startedAt).toLocaleTimeString()} {JSON.stringify(call.arguments)}
          </span>
        </>
      ),
      run: () => (location.hash = hrefOfCall(call.tool, call.arguments)),
    }));
}
