/**
 * The form of a schema. Each input shows and replaces one value; issues are shown below the input.
 */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { FormSchema, ListShape, ObjectShape, Place, Shape } from "../../schema/form.ts";
import { isObject, type Issue } from "../../tool/mod.ts";
import { Input } from "./inputs.tsx";
import { pointerOf, withMember } from "./json_views.ts";
import { Button } from "./parts.tsx";

type Element = JSX.Element;
type Path = readonly (string | number)[];

interface FormState {
  readonly schema: FormSchema;
  readonly issues: readonly Issue[];
  /** Replaces the value at a path; `undefined` removes it. */
  readonly set: (path: Path, value: unknown) => void;
  readonly chosen: ReadonlyMap<string, number>;
  readonly choose: (pointer: string, index: number) => void;
}

export function Form({ schema, value, issues, onChange, name }: {
  readonly schema: FormSchema;
  readonly value: unknown;
  readonly issues: readonly Issue[];
  readonly onChange: (value: unknown) => void;
  readonly name: string;
}): Element {
  const [chosen, setChosen] = useState<ReadonlyMap<string, number>>(new Map());
  const state: FormState = {
    ...{ schema, issues, chosen },
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
  readonly place: Place;
  readonly path: Path;
  readonly value: unknown;
  readonly name: string;
  readonly required: boolean;
  /** An item of a list is removed by the list. */
  readonly isItem?: boolean;
  /**
   * The number of alternatives around the value. From 1 on, the label, the description and the issues
   * belong to the alternatives.
   */
  readonly nesting?: number;
}

type GroupShape = Shape & { readonly kind: "object" | "list" | "variants" };

/** The maximum nesting of alternatives, because a schema may be recursive. */
const MAX_NESTING = 4;

function isGroup(shape: Shape, nesting: number): shape is GroupShape {
  return shape.kind === "object" || shape.kind === "list" ||
    shape.kind === "variants" && nesting <= MAX_NESTING;
}

function messagesOf({ state: { issues }, path, value, required }: FieldProps): readonly string[] {
  const [own, parent] = [path, path.slice(0, -1)].map(pointerOf);
  // A missing property is an issue of the object; the user looks for it here.
  const isMissing = required && value === undefined && path.length > 0 &&
    issues.some(({ path, keyword }) => path === parent && keyword === "required");
  if (isMissing) return ["This must be given"];
  return issues.filter(({ path }) => path === own).map(({ message }) => message);
}

function Field(props: FieldProps): Element | null {
  const { state, place, path, value, name, required, isItem = false, nesting = 0 } = props;
  const id = useId();
  const { schema } = state;
  const shape = schema.shapeOf(place);
  const { title, description, deprecated, examples, default: usual } = schema.notesOf(place);
  const messages = messagesOf(props);
  const isRoot = path.length === 0;
  const isThere = value !== undefined;
  // Without a value, an item would disappear.
  const onChange = (next: unknown): void => state.set(path, isItem ? (next ?? null) : next);
  const described = [
    ...(description === undefined ? [] : [`${id}-about`]),
    ...(messages.length > 0 ? [`${id}-wrong`] : []),
  ].join(" ") || undefined;
  const isInAlternative = nesting > 0;
  const members = isGroup(shape, nesting) && isThere && (
    <div class="stack">
      {shape.kind === "object"
        ? <ObjectField {...props} shape={shape} />
        : shape.kind === "list"
        ? <ListField {...props} shape={shape} />
        : <VariantsField {...props} shape={shape} />}
    </div>
  );
  if (isInAlternative && (members || shape.kind === "null")) return members || null;

  const input = (
    <Input
      attributes={{
        id,
        "aria-invalid": messages.length > 0,
        "aria-required": required && !isItem,
        "aria-describedby": isInAlternative ? undefined : described,
      }}
      value={value}
      hint={usual !== undefined
        ? `by default ${JSON.stringify(usual)}`
        : examples.length > 0
        ? `such as ${JSON.stringify(examples[0])}`
        : "not set"}
      onChange={onChange}
      shape={shape}
    />
  );
  if (isInAlternative) {
    return (
      <>
        <label for={id} class="hidden">{name}</label>
        {input}
      </>
    );
  }
  const about = description !== undefined && !isRoot && (
    <p id={`${id}-about`} class="about">{description}</p>
  );
  const wrong = messages.length > 0 && (
    <ul id={`${id}-wrong`} class="wrong">
      {messages.map((message) => <li key={message}>{message}</li>)}
    </ul>
  );
  const called = (
    <>
      {name === "" ? '""' : name}{" "}
      {title !== undefined && title !== name && <span class="faint remarks">{title}</span>}
    </>
  );
  const remarks = (
    <span class="faint remarks grow" aria-hidden="true">
      {required && !isRoot && !isItem && "required "}
      {deprecated && "deprecated"}
    </span>
  );
  const unset = isThere && !isRoot && !required && !isItem && (
    <Button
      kind="quiet"
      label={`Remove ${name}`}
      onClick={() => onChange(undefined)}
    >
      ×
    </Button>
  );
  if (!isGroup(shape, nesting)) {
    return (
      <div class="field">
        <div class="row label">
          <label for={id}>{called}</label> {remarks} {unset}
        </div>
        {about}
        {input}
        {wrong}
      </div>
    );
  }
  if (isRoot && shape.kind === "object") return <>{wrong} {members}</>;
  return (
    <fieldset class="box" aria-describedby={described}>
      <legend>{called} {remarks} {unset}</legend>
      {about}
      {!isThere && (
        <Button
          kind="quiet"
          label={`Add ${name}`}
          onClick={() => onChange(schema.initial(place))}
        >
          + Add
        </Button>
      )}
      {members}
      {wrong}
    </fieldset>
  );
}

/**
 * The maximum number of fields for a list or an object, because each is laid out at every key
 * press.
 */
const MAX_SHOWN = 50;

function More({ count }: { readonly count: number }): Element | null {
  return count > 0 ? <p class="faint">{count} more are in the JSON</p> : null;
}

function ObjectField({
  state,
  path,
  value,
  shape: { properties, required, rest },
}: FieldProps & { readonly shape: ObjectShape }): Element {
  const [added, setAdded] = useState("");
  const id = useId();
  const own = isObject(value) ? value : {};
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
        <p class="about">The value is no object; what is filled in here replaces it.</p>
      )}
      {[...properties.keys(), ...others.slice(0, MAX_SHOWN)].map((name) => (
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
          <Button kind="quiet" disabled={added === "" || isTaken} onClick={add}>+ Add</Button>
        </div>
      )}
    </>
  );
}

function ListField({
  state,
  path,
  value,
  shape: { first, rest, maxItems },
  name,
}: FieldProps & { readonly shape: ListShape }): Element {
  const list = Array.isArray(value) ? value : [];
  const next = first[list.length] ?? rest;
  /** Sets an item to the initial value of its schema, or removes it. */
  const set = (index: number, place?: Place): void =>
    state.set([...path, index], place && state.schema.initial(place));
  const moveUp = (index: number): void => {
    const moved = [...list];
    moved.splice(index - 1, 0, ...moved.splice(index, 1));
    state.set(path, moved);
  };
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
            isItem
          />
          <div class="row">
            <Button
              kind="quiet"
              label={`Move ${name} ${index + 1} up`}
              disabled={index === 0}
              onClick={() => moveUp(index)}
            >
              ↑
            </Button>
            <Button kind="quiet" label={`Remove ${name} ${index + 1}`} onClick={() => set(index)}>
              ×
            </Button>
          </div>
        </div>
      ))}
      <More count={list.length - MAX_SHOWN} />
      {next !== undefined && list.length < maxItems && (
        <Button
          kind="quiet"
          label={`Add an item to ${name}`}
          onClick={() => set(list.length, next)}
        >
          + Add an item
        </Button>
      )}
    </>
  );
}

function VariantsField({ shape: { variants }, ...props }: FieldProps & {
  readonly shape: GroupShape & { readonly kind: "variants" };
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
