/**
 * An editor for JSON: a plain text area over the same text in colours. A text area supports undo,
 * selection and screen readers.
 *
 * @module
 */

import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { Coloured } from "./parts.tsx";

/** The editor. */
export function Editor({
  label,
  text,
  error,
  onChange,
}: {
  readonly label: string;
  readonly text: string;
  /** The reason why the text is not valid JSON. */
  readonly error: string | undefined;
  readonly onChange: (text: string) => void;
}): JSX.Element {
  const id = useId();
  const behind = useRef<HTMLPreElement>(null);
  return (
    <div class="editor">
      <label for={id}>{label}</label>
      <div class="layers">
        <pre ref={behind} aria-hidden="true">
          <Coloured text={`${text}\n`} />
        </pre>
        <textarea
          id={id}
          class="code"
          value={text}
          wrap="off"
          spellcheck={false}
          autocomplete="off"
          aria-invalid={error !== undefined}
          aria-describedby={`${id}-wrong`}
          onInput={(event) => onChange(event.currentTarget.value)}
          onScroll={({ currentTarget }) => {
            if (behind.current === null) return;
            behind.current.scrollTop = currentTarget.scrollTop;
            behind.current.scrollLeft = currentTarget.scrollLeft;
          }}
        />
      </div>
      <p id={`${id}-wrong`} class="wrong" role="status">
        {error}
      </p>
    </div>
  );
}
