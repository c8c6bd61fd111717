/** The form of a schema. Each input shows and replaces one value, with its issues below it. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type * as forms from "../../schema/form.ts";
import { isObject, type Issue } from "../../tool/mod.ts";
import { Input } from "./inputs.tsx";
import { pointerOf, withMember } from "./json_views.ts";
import { Icon } from "./icons.tsx";
import { Button, counted } from "./parts.tsx";

type Element = JSX.Element;
type Path = readonly (string | number)[];

interface FormState {
  readonly schema: forms.FormSchema;
  readonly issues: readonly Issue[];
  /** Replaces the value at a path; `undefined` removes it. */
  readonly set: (path: Path, value: unknown) => void;
  readonly chosen: ReadonlyMap<string, number>;
  readonly choose: (pointer: string, index: number) => void;
  /** The pointers of optional values that the user has added, which may have no value yet. */
  readonly added: ReadonlySet<string>;
  /** The pointer of the value that was added last. Its input takes the focus. */
  readonly last: string | undefined;
  readonly add: (path: Path, isShown: boolean) => void;
}

export function Form({ schema, value, issues, onChange, name }: {
  readonly schema: forms.FormSchema;
  readonly value: unknown;
  readonly issues: readonly Issue[];
  readonly onChange: (value: unknown) => void;
  readonly name: string;
}): Element {
  const [chosen, setChosen] = useState<ReadonlyMap<string, number>>(new Map());
  const [added, setAdded] = useState<ReadonlySet<string>>(new Set());
  const [last, setLast] = useState<string>();
  const state: FormState = {
    ...{ schema, issues, chosen, added, last },
    add(path, isShown) {
      const pointer = pointerOf(path);
      const others = [...added].filter((one) => one !== pointer);
      setAdded(new Set(isShown ? [...others, pointer] : others));
      setLast(isShown ? pointer : undefined);
    },
    set: (path, member) => onChange(withMember(value, path, member)),
    choose: (pointer, index) => setChosen(new Map([...chosen, [pointer, index]])),
  };
  return (
    <div class="stack" role="group" aria-label={name}>
      <Field state={state} place={schema.root} path={[]} value={value} name={name} required />
    </div>
  );
}

interface FieldProps {
  readonly state: FormState;
  readonly place: forms.Place;
  readonly path: Path;
  readonly value: unknown;
  readonly name: string;
  readonly required: boolean;
  /**
   * The number of alternatives around the value. From 1 on, the label, the description and the issues
   * belong to the alternatives.
   */
  readonly nesting?: number;
}

/** The maximum nesting of alternatives, because a schema may be recursive. */
const MAX_NESTING = 4;

/** True for an item of a list, which only the list removes. */
function isItem(path: Path): boolean {
  return typeof path.at(-1) === "number";
}

function messagesOf(
  { state: { issues }, path, value, required }: FieldProps,
  shape: forms.Shape,
): readonly string[] {
  const [own, parent] = [path, path.slice(0, -1)].map(pointerOf);
  // The check reports a missing property as an issue of the object.
  const isMissing = required && value === undefined && path.length > 0 &&
    issues.some(({ path, keyword }) => path === parent && keyword === "required");
  if (isMissing) return ["This must be given"];
  const isSaid = shape.kind === "object" && isObject(value) &&
    [...shape.required].some((name) => !Object.hasOwn(value, name) && shape.properties.has(name));
  return issues
    .filter(({ path, keyword }) => path === own && !(isSaid && keyword === "required"))
    .map(({ message }) => message);
}

/** Moves the focus into a field that was added by a button, which has disappeared. */
function focusFirst(field: HTMLElement | null): void {
  field?.querySelector<HTMLElement>("input, select, textarea, :scope > .stack button")?.focus();
}

function Field(props: FieldProps): Element | null {
  const { state, place, path, value, name, required, nesting = 0 } = props;
  const { schema, set } = state;
  const id = useId();
  const shape = schema.shapeOf(place);
  const notes = schema.notesOf(place);
  const messages = messagesOf(props, shape);
  const hasAbout = notes.description !== undefined && path.length > 0;
  const describedBy = [hasAbout && `${id}-about`, messages.length > 0 && `${id}-wrong`]
    .filter(Boolean).join(" ") || undefined;
  const isGroup = shape.kind === "object" || shape.kind === "list" ||
    shape.kind === "variants" && nesting <= MAX_NESTING;
  const members = isGroup && value !== undefined && (
    <div class="stack">
      {shape.kind === "object"
        ? <ObjectField {...props} shape={shape} />
        : shape.kind === "list"
        ? <ListField {...props} shape={shape} />
        : <VariantsField {...props} variants={shape.variants} />}
    </div>
  );
  if (nesting > 0 && (members || shape.kind === "null")) return members || null;
  const input = (
    <Input
      attributes={{
        id,
        "aria-invalid": messages.length > 0,
        "aria-required": required && !isItem(path),
        "aria-describedby": nesting > 0 ? undefined : describedBy,
      }}
      // An item without a value would disappear from the list.
      onChange={(next) => set(path, isItem(path) ? (next ?? null) : next)}
      {...{ value, shape, notes }}
    />
  );
  if (nesting > 0) {
    return (
      <>
        <label for={id} class="hidden">{name}</label>
        {input}
      </>
    );
  }
  const about = hasAbout && <p id={`${id}-about`} class="about">{notes.description}</p>;
  const wrong = messages.length > 0 && (
    <ul id={`${id}-wrong`} class="wrong">
      {messages.map((message) => <li key={message}>{message}</li>)}
    </ul>
  );
  const ref = path.length > 0 && state.last === pointerOf(path) ? focusFirst : null;
  if (!isGroup) {
    return (
      <div class="field" ref={ref}>
        <div class="row label">
          <Caption {...props} notes={notes} input={id} type={typeOf(shape)} />
        </div>
        {about}
        {input}
        {wrong}
      </div>
    );
  }
  if (path.length === 0 && shape.kind === "object") return <>{wrong} {members}</>;
  return (
    <fieldset class="box" aria-describedby={describedBy} ref={ref}>
      <legend>
        <Caption {...props} notes={notes} />
      </legend>
      {about}
      {members || (
        <Button
          kind="quiet"
          label={`Add ${name}`}
          onClick={() => set(path, schema.initial(place))}
        >
          <Icon name="plus" />
          Add
        </Button>
      )}
      {wrong}
    </fieldset>
  );
}

function typeOf(shape: forms.Shape): string {
  switch (shape.kind) {
    case "choice":
      return `one of ${shape.choices.length}`;
    case "text":
      return shape.format ?? "text";
    case "number":
      return shape.integer ? "integer" : "number";
    case "json":
      return "any JSON";
    default:
      return shape.kind;
  }
}

/** The name and the title of a value, its remarks, and a button that removes an optional value. */
function Caption(
  { state, path, name, required, notes: { title, deprecated }, input, type }:
    & FieldProps
    & { readonly notes: forms.Notes; readonly input?: string; readonly type?: string },
): Element {
  const text = (
    <>
      {name === "" ? '""' : name}{" "}
      {title !== undefined && title !== name && <span class="faint remarks">{title}</span>}
    </>
  );
  return (
    <>
      {input === undefined ? text : <label id={`${input}-name`} for={input}>{text}</label>}
      {required && path.length > 0 && !isItem(path) && (
        <span class="required" aria-hidden="true">*</span>
      )}{" "}
      <span class="remarks grow number" aria-hidden="true">
        {deprecated && "deprecated "}
        {type}
      </span>
      {!required && (
        <Button
          kind="quiet small"
          label={`Remove ${name}`}
          onClick={() => {
            state.add(path, false);
            state.set(path, undefined);
          }}
        >
          <Icon name="x" />
        </Button>
      )}
    </>
  );
}

/** The maximum number of fields of a list or an object: each key press lays out all of them. */
const MAX_SHOWN = 50;

function More({ count }: { readonly count: number }): Element | null {
  return count > 0 ? <p class="faint">{count} more are in the JSON</p> : null;
}

function ObjectField({
  state,
  path,
  value,
  shape: { properties, required, rest },
}: FieldProps & { readonly shape: forms.ObjectShape }): Element {
  const [added, setAdded] = useState("");
  const id = useId();
  const own = isObject(value) ? value : {};
  const isShown = (name: string): boolean =>
    required.has(name) || Object.hasOwn(own, name) || state.added.has(pointerOf([...path, name]));
  const offered = [...properties].filter(([name]) => !isShown(name));
  const others = Object.keys(own).filter((name) => !properties.has(name));
  const isTaken = Object.hasOwn(own, added) || properties.has(added);
  const add = (): void => {
    if (added === "" || isTaken || rest === undefined) return;
    state.set([...path, added], state.schema.initial(rest));
    setAdded("");
  };
  return (
    <>
      {!isObject(value) && value !== undefined && (
        <p class="about">The value is not an object. A filled-in field replaces it.</p>
      )}
      {[...[...properties.keys()].filter(isShown), ...others.slice(0, MAX_SHOWN)].map((name) => (
        <Field
          key={name}
          state={state}
          place={properties.get(name) ?? rest ?? []}
          path={[...path, name]}
          value={Object.hasOwn(own, name) ? own[name] : undefined}
          name={name}
          required={required.has(name)}
        />
      ))}
      <More count={others.length - MAX_SHOWN} />
      <Offers {...{ state, path, offered }} />
      {rest !== undefined && (
        <div class="row">
          <label for={id} class="hidden">Name of another property</label>
          <input
            id={id}
            type="text"
            value={added}
            placeholder="name of another property"
            onInput={(event) => setAdded(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && add()}
          />
          <Button kind="quiet" disabled={added === "" || isTaken} onClick={add}>
            <Icon name="plus" />
            Add
          </Button>
        </div>
      )}
    </>
  );
}

/** The optional values that are not sent, each with a button that adds it to the form. */
function Offers({ state, path, offered }: Pick<FieldProps, "state" | "path"> & {
  readonly offered: readonly (readonly [string, forms.Place])[];
}): Element | null {
  if (offered.length === 0) return null;
  const add = (name: string, place: forms.Place): void => {
    const { kind } = state.schema.shapeOf(place);
    const isTyped = kind === "text" || kind === "number" || kind === "choice" || kind === "json";
    state.add([...path, name], true);
    if (!isTyped) state.set([...path, name], state.schema.initial(place));
  };
  return (
    <div class="row">
      {offered.map(([name, place]) => (
        <Button
          key={name}
          kind="quiet"
          label={`Add ${name}`}
          onClick={() => add(name, place)}
        >
          <Icon name="plus" />
          <code>{name}</code>
        </Button>
      ))}
      <span class="small faint">
        {counted(offered.length, "optional value")} not sent
      </span>
    </div>
  );
}

function ListField({
  state,
  path,
  value,
  shape: { first, rest, maxItems },
  name,
}: FieldProps & { readonly shape: forms.ListShape }): Element {
  const list = Array.isArray(value) ? value : [];
  const next = first[list.length] ?? rest;
  /** Sets an item to the initial value of its schema, or removes it. */
  const set = (index: number, place?: forms.Place): void =>
    state.set([...path, index], place && state.schema.initial(place));
  return (
    <>
      {list.slice(0, MAX_SHOWN).map((item: unknown, index) => (
        <div key={index} class="item">
          <Field
            state={state}
            place={first[index] ?? rest ?? []}
            path={[...path, index]}
            value={item}
            name={`${name} ${index + 1}`}
            required
          />
          <Button
            kind="quiet small"
            label={`Remove ${name} ${index + 1}`}
            onClick={() => set(index)}
          >
            <Icon name="x" />
          </Button>
        </div>
      ))}
      <More count={list.length - MAX_SHOWN} />
      {next !== undefined && list.length < maxItems && (
        <Button
          kind="quiet"
          label={`Add an item to ${name}`}
          onClick={() => set(list.length, next)}
        >
          <Icon name="plus" />
          Add an item
        </Button>
      )}
    </>
  );
}

function VariantsField({ variants, ...props }: FieldProps & {
  readonly variants: readonly forms.Variant[];
}): Element {
  const { state, path, value, name, nesting = 0 } = props;
  const id = useId();
  const pointer = `${nesting}${pointerOf(path)}`;
  const index = state.chosen.get(pointer) ?? state.schema.variantOf(variants, value);
  return (
    <>
      <label for={id} class="hidden">Form of {name}</label>
      <select
        id={id}
        value={String(index)}
        onChange={(event) => {
          const next = Number(event.currentTarget.value);
          state.choose(pointer, next);
          const chosen = variants[next];
          if (chosen !== undefined) state.set(path, state.schema.initial(chosen.place));
        }}
      >
        {variants.map(({ label }, own) => <option key={own} value={String(own)}>{label}</option>)}
      </select>
      <Field {...props} place={variants[index]?.place ?? []} nesting={nesting + 1} />
    </>
  );
}
