/** The page that runs programs: the editor, the functions of a program, and the program's calls. */

import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { argumentsOf, firstSentence, functionPath } from "../../finding/signature.ts";
import { isObject } from "../../tool/mod.ts";
import { CallView, RUN_CODE } from "./call_view.tsx";
import { calls, lastCallOf, run } from "./calls.ts";
import { Icon } from "./icons.tsx";
import { Button, useGrowing, useRun } from "./parts.tsx";
import { type ListedTool, SearchField, shown, tools } from "./tools.tsx";

export const runsPrograms = computed(() => tools.value.get(RUN_CODE)?.executable === true);

/** The program, stored while other pages are open. */
const program = signal("");

const isCallable = ({ id, executable }: ListedTool): boolean =>
  executable && id !== RUN_CODE && id !== "search_tools";

const functions = computed(() =>
  [...tools.value.values()].filter(isCallable).map(({ id }) => functionPath(id))
);

export function Code(): JSX.Element {
  const call = calls.value.length === 0 ? undefined : lastCallOf(RUN_CODE);
  const isRunning = call?.status === "running";
  const start = (): void => {
    if (isRunning || program.value.trim() === "") return;
    void run(RUN_CODE, { code: program.value }, true);
  };
  useRun(start);
  return (
    <main id="main" tabIndex={-1}>
      <h1>Code</h1>
      <p class="faint">
        A program calls many tools. Each of its calls passes the same checks as a call of yours.
      </p>
      <div class="code-grid stack">
        <div class="stack">
          <ProgramEditor />
          <div class="row">
            <Button kind="main" busy={isRunning} onClick={start}>
              <Icon name="play" />
              Run
            </Button>
            <kbd>Ctrl</kbd> + <kbd>Enter</kbd>
          </div>
        </div>
        {call === undefined
          ? <p class="box faint">The calls, the log and the value of the program are shown here.</p>
          : <CallView call={call} />}
        <Functions />
      </div>
    </main>
  );
}

/** Reduces a path to its names: `tools["a-b"]` and `tools.a-b` are equal. */
const namesIn = (path: string): string => path.replace(/[[\]"'.]+/g, ".").toLowerCase();

/** Returns the function that completes the path before the caret, and the start of the path. */
function completionOf(before: string): { readonly from: number; readonly best?: string } {
  const [path = "tools"] = /\btools[.[][\w.$["'\]-]*$/.exec(before) ?? [];
  const best = functions.value.find((one) =>
    one !== path && namesIn(one).startsWith(namesIn(path))
  );
  return { from: before.length - path.length, ...(best && path !== "tools" && { best }) };
}

function ProgramEditor(): JSX.Element {
  const id = useId();
  const [caret, setCaret] = useState(0);
  // After Escape, Tab moves the focus, because the keyboard must be able to leave the editor.
  const isLeaving = useRef(false);
  const source = program.value;
  const { from, best } = completionOf(source.slice(0, caret));
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLTextAreaElement>): void => {
    const { key, shiftKey, currentTarget } = event;
    const indents = key === "Tab" && !shiftKey && !isLeaving.current;
    isLeaving.current = key === "Escape" || (isLeaving.current && key === "Tab");
    if (!indents) return;
    event.preventDefault();
    if (best !== undefined) currentTarget.setSelectionRange(from, currentTarget.selectionEnd);
    // The only way to write a text that the user can undo.
    document.execCommand("insertText", false, best ?? "  ");
  };
  const follow = (
    { currentTarget: { value, selectionEnd } }: JSX.TargetedEvent<HTMLTextAreaElement>,
  ): void => {
    program.value = value;
    setCaret(selectionEnd);
  };
  const numbers = source.split("\n").map((_, index) => index + 1);
  return (
    <div>
      <label for={id}>Program</label>
      <div class="program box">
        <pre aria-hidden="true">{numbers.join("\n")}</pre>
        <textarea
          id={id}
          class="code"
          value={source}
          rows={numbers.length}
          wrap="off"
          spellcheck={false}
          autocomplete="off"
          placeholder="return await tools…"
          aria-describedby={`${id}-hint`}
          onInput={follow}
          onKeyUp={follow}
          onClick={follow}
          onKeyDown={onKeyDown}
        />
      </div>
      <p id={`${id}-hint`} class="about" role="status">
        {best === undefined
          ? "The body of an async function. Tab indents; Escape, then Tab leaves the editor."
          : `Tab completes ${best}`}
      </p>
    </div>
  );
}

/** The functions of a program with their types, which a search narrows. */
function Functions(): JSX.Element {
  const list = shown.value.filter(isCallable);
  const { count, end } = useGrowing<HTMLLIElement>(list.length);
  return (
    <section class="stack" aria-label="Functions">
      <h2>Functions</h2>
      <SearchField />
      <ul class="stack scroll box" tabIndex={0} aria-label="Functions with their types">
        {list.slice(0, count).map((tool) => (
          <li key={tool.id}>
            <code>
              <b>{functionPath(tool.id)}</b>
              {typeOf(tool)}
            </code>
            <p class="about">{firstSentence(tool)}</p>
          </li>
        ))}
        {list.length > count && <li key="" ref={end} class="faint">{list.length - count} more</li>}
      </ul>
    </section>
  );
}

function typeOf({ parameters, returns }: ListedTool): string {
  const result = isObject(returns) ? argumentsOf({ parameters: returns }).text : "unknown";
  return `(${argumentsOf({ parameters }).text}): Promise<${result}>`;
}
