/**
 * The form of a schema. Each input shows and replaces one value; issues are shown below the input.
 *
 * @module
 */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type {
  Choice,
  FormSchema,
  ListShape,
  ObjectShape,
  Place,
  Shape,
  Variant,
} from "../../schema/form.ts";
import { isObject, type Issue } from "../../tool/mod.ts";
import { isRounded, parse, pointerOf, withMember } from "./json_views.ts";
import { Button } from "./parts.tsx";

type Element = JSX.Element;
type Path = readonly (string | number)[];

/** The shared state of a form's inputs. */
interface FormState {
  readonly schema: FormSchema;
  readonly issues: ReadonlyMap<string, readonly Issue[]>;
  /** Replaces the value at a path; `undefined` removes it. */
  readonly set: (path: Path, value: unknown) => void;
  /** The variants that the user chose, by path. */
  readonly chosen: ReadonlyMap<string, number>;
  readonly choose: (pointer: string, index: number) => void;
}

/** A form for a value. */
export function Form({
  schema,
  value,
  issues,
  onChange,
  name,
}: {
  readonly schema: FormSchema;
  readonly value: unknown;
  readonly issues: readonly Issue[];
  readonly onChange: (value: unknown) => void;
  /** The label of the value. */
  readonly name: string;
}): Element {
  const [chosen, setChosen] = useState<ReadonlyMap<string, number>>(new Map());
  const byPath = new Map<string, Issue[]>();
  for (const issue of issues) {
    byPath.set(issue.path, [...(byPath.get(issue.path) ?? []), issue]);
  }
  const state: FormState = {
    schema,
    issues: byPath,
    set: (path, member) => onChange(withMember(value, path, member)),
    chosen,
    choose: (pointer, index) => setChosen(new Map([...chosen, [pointer, index]])),
  };
  return (
    <div class="form" role="group" aria-label={name}>
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
  /** The nesting depth of forms, which is limited because a schema may be recursive. */
  readonly nesting?: number;
}

type GroupShape = Shape & { readonly kind: "object" | "list" | "variants" };

function isGroup(shape: Shape): shape is GroupShape {
  return shape.kind === "object" || shape.kind === "list" || shape.kind === "variants";
}

/** Properties of an input. */
interface InputProps {
  /** The id of the element, and its label for screen readers. */
  readonly attributes: {
    readonly id: string;
    readonly "aria-invalid": boolean;
    readonly "aria-required": boolean;
    readonly "aria-describedby": string | undefined;
  };
  readonly value: unknown;
  readonly hint: string;
  readonly onChange: (value: unknown) => void;
}

/** One field: its label, its description, its input and its issues. */
function Field(props: FieldProps): Element {
  const { state, place, path, value, name, required, isItem = false } = props;
  const id = useId();
  const { schema } = state;
  const shape = schema.shapeOf(place);
  const { title, description, deprecated, examples, default: usual } = schema.notesOf(place);
  const pointer = pointerOf(path);
  // A missing property is an issue of the object; the user looks for it here.
  const parent = path.length === 0 ? [] : (state.issues.get(pointerOf(path.slice(0, -1))) ?? []);
  const isMissing = required && value === undefined &&
    parent.some(({ keyword }) => keyword === "required");
  const issues = isMissing
    ? ["This must be given"]
    : (state.issues.get(pointer) ?? []).map(({ message }) => message);
  const isRoot = path.length === 0;
  const isThere = value !== undefined;
  // Without a value, an item would disappear.
  const onChange = (next: unknown): void => state.set(path, isItem ? (next ?? null) : next);
  const described = [
    ...(description === undefined ? [] : [`${id}-about`]),
    ...(issues.length > 0 ? [`${id}-wrong`] : []),
  ].join(" ") || undefined;
  const about = description !== undefined && !isRoot && (
    <p id={`${id}-about`} class="about">
      {description}
    </p>
  );
  const wrong = issues.length > 0 && (
    <ul id={`${id}-wrong`} class="wrong">
      {issues.map((message) => <li key={message}>{message}</li>)}
    </ul>
  );
  const called = (
    <>
      {name === "" ? '""' : name}
      {title !== undefined && title !== name && <span class="faint">{title}</span>}
    </>
  );
  const remarks = (
    <span class="remarks" aria-hidden="true">
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

  if (isGroup(shape)) {
    const members = isThere && <GroupField {...props} shape={shape} />;
    if (isRoot && shape.kind === "object") {
      return <>{wrong} {members}</>;
    }
    return (
      <fieldset class="group" aria-describedby={described}>
        <legend>
          {called} {remarks} {unset}
        </legend>
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
  const input: InputProps = {
    attributes: {
      id,
      "aria-invalid": issues.length > 0,
      "aria-required": required && !isItem,
      "aria-describedby": described,
    },
    value,
    hint: usual !== undefined
      ? `by default ${JSON.stringify(usual)}`
      : examples.length > 0
      ? `such as ${JSON.stringify(examples[0])}`
      : "not set",
    onChange,
  };
  return (
    <div class="field">
      <div class="label">
        <label for={id}>{called}</label> {remarks} {unset}
      </div>
      {about}
      <Input {...input} shape={shape} />
      {wrong}
    </div>
  );
}

/** The input for an object, a list, or a value with several alternatives. */
function GroupField({ shape, ...props }: FieldProps & { readonly shape: GroupShape }): Element {
  if (shape.kind === "object") return <ObjectField {...props} shape={shape} />;
  return shape.kind === "list"
    ? <ListField {...props} shape={shape} />
    : <VariantsField {...props} variants={shape.variants} />;
}

/** The input for a scalar value. */
function Input({ shape, ...input }: InputProps & { readonly shape: Shape }): Element {
  switch (shape.kind) {
    case "choice":
      return <ChoiceInput {...input} choices={shape.choices} />;
    case "boolean":
      return <ChoiceInput {...input} choices={BOOLEANS} />;
    case "null":
      return <ChoiceInput {...input} choices={NULLS} />;
    case "number":
      return <NumberInput {...input} integer={shape.integer} />;
    case "text":
      return <TextInput {...input} format={shape.format} />;
    default:
      return <JsonInput {...input} />;
  }
}

const BOOLEANS: readonly Choice[] = [
  { label: "true", value: true },
  { label: "false", value: false },
];
const NULLS: readonly Choice[] = [{ label: "null", value: null }];

/**
 * The maximum number of fields for a list or an object, because each is laid out at every key
 * press.
 */
const MAX_SHOWN = 50;

/** A note that there are parts without a field. */
function More({ count }: { readonly count: number }): Element | null {
  return count > 0 ? <p class="faint">{count} more are in the JSON</p> : null;
}

function ObjectField({
  state,
  path,
  value,
  shape,
}: FieldProps & { readonly shape: ObjectShape }): Element {
  const [added, setAdded] = useState("");
  const id = useId();
  const own = isObject(value) ? value : {};
  const { properties, required, rest } = shape;
  const others = Object.keys(own).filter((name) => !properties.has(name));
  const isTaken = Object.hasOwn(own, added) || properties.has(added);
  const add = (): void => {
    if (added === "" || isTaken || rest === undefined) return;
    state.set([...path, added], state.schema.initial(rest));
    setAdded("");
  };
  return (
    <div class="members">
      {!isObject(value) && value !== undefined && (
        <p class="about">The value is no object; what is filled in here replaces it.</p>
      )}
      {[...properties].map(([name, place]) => (
        <Field
          key={name}
          state={state}
          place={place}
          path={[...path, name]}
          value={Object.hasOwn(own, name) ? own[name] : undefined}
          name={name}
          required={required.has(name)}
        />
      ))}
      {others.slice(0, MAX_SHOWN).map((name) => (
        <Field
          key={name}
          state={state}
          place={rest ?? []}
          path={[...path, name]}
          value={own[name]}
          name={name}
          required={required.has(name)}
        />
      ))}
      <More count={others.length - MAX_SHOWN} />
      {rest !== undefined && (
        <div class="row">
          <label for={id} class="hidden">
            Name of another property
          </label>
          <input
            id={id}
            type="text"
            value={added}
            placeholder="name of another property"
            onInput={(event) => setAdded(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && add()}
          />
          <Button kind="quiet" disabled={added === "" || isTaken} onClick={add}>
            + Add
          </Button>
        </div>
      )}
    </div>
  );
}

function ListField({
  state,
  path,
  value,
  shape,
  name,
}: FieldProps & { readonly shape: ListShape }): Element {
  const list = Array.isArray(value) ? value : [];
  const { first, rest, maxItems } = shape;
  const next = first[list.length] ?? rest;
  const move = (from: number, to: number): void => {
    const moved = [...list];
    moved.splice(to, 0, ...moved.splice(from, 1));
    state.set(path, moved);
  };
  return (
    <div class="members">
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
              onClick={() => move(index, index - 1)}
            >
              ↑
            </Button>
            <Button
              kind="quiet"
              label={`Remove ${name} ${index + 1}`}
              onClick={() => state.set([...path, index], undefined)}
            >
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
          onClick={() => state.set([...path, list.length], state.schema.initial(next))}
        >
          + Add an item
        </Button>
      )}
    </div>
  );
}

function VariantsField(props: FieldProps & { readonly variants: readonly Variant[] }): Element {
  const { state, path, value, name, variants, nesting = 0 } = props;
  const id = useId();
  const pointer = `${nesting}${pointerOf(path)}`;
  const index = state.chosen.get(pointer) ?? state.schema.variantOf(variants, value);
  const place = variants[index]?.place ?? [];
  return (
    <div class="members">
      <label for={id} class="hidden">
        Form of {name}
      </label>
      <select
        id={id}
        value={String(index)}
        onChange={(event) => {
          const next = Number(event.currentTarget.value);
          state.choose(pointer, next);
          const chosen = variants[next];
          if (chosen !== undefined) {
            state.set(path, state.schema.initial(chosen.place));
          }
        }}
      >
        {variants.map(({ label }, own) => (
          <option key={own} value={String(own)}>
            {label}
          </option>
        ))}
      </select>
      <VariantInput {...props} place={place} />
    </div>
  );
}

const MAX_NESTING = 4;

/** The input of a variant, without the label, which the group shows. */
function VariantInput(props: FieldProps): Element | null {
  const { state, place, path, value, name, nesting = 0 } = props;
  const shape = state.schema.shapeOf(place);
  if (shape.kind === "null") return null;
  if (isGroup(shape) && (shape.kind !== "variants" || nesting < MAX_NESTING)) {
    return <GroupField {...props} nesting={nesting + 1} shape={shape} />;
  }
  const id = useId();
  const input: InputProps = {
    attributes: {
      id,
      "aria-invalid": state.issues.has(pointerOf(path)),
      "aria-required": props.required,
      "aria-describedby": undefined,
    },
    value,
    hint: "",
    onChange: (next) => state.set(path, next),
  };
  return (
    <>
      <label for={id} class="hidden">
        {name}
      </label>
      <Input {...input} shape={shape} />
    </>
  );
}

/** A list of allowed values. The current value may be a different one. */
function ChoiceInput(
  { attributes, value, hint, onChange, choices }: InputProps & {
    readonly choices: readonly Choice[];
  },
): Element {
  const text = JSON.stringify(value);
  const index = choices.findIndex((choice) => JSON.stringify(choice.value) === text);
  return (
    <select
      {...attributes}
      value={String(index)}
      onChange={(event) => {
        const next = Number(event.currentTarget.value);
        onChange(next === -1 ? undefined : choices[next]?.value);
      }}
    >
      {index === -1 && (
        <option value="-1">{value === undefined ? hint : `${text} (no choice)`}</option>
      )}
      {choices.map(({ label }, own) => <option key={own} value={String(own)}>{label}</option>)}
    </select>
  );
}

const NUMBER = /^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** Returns a text as a number. Other text stays a text, and the check reports it. */
function numberOf(text: string): unknown {
  if (text === "") return undefined;
  return NUMBER.test(text) && Number.isFinite(Number(text)) && !isRounded(text)
    ? Number(text)
    : text;
}

function NumberInput(
  { attributes, value, hint, onChange, integer }: InputProps & { readonly integer: boolean },
): Element {
  const [typed, setTyped] = useState("");
  // The typed text stays unchanged: "1.0" may become "1.05".
  const text = numberOf(typed) === value
    ? typed
    : value === undefined || value === null
    ? ""
    : typeof value === "string"
    ? value
    : JSON.stringify(value);
  return (
    <input
      {...attributes}
      type="text"
      inputMode={integer ? "numeric" : "decimal"}
      value={text}
      placeholder={hint}
      onInput={(event) => {
        const next = event.currentTarget.value.trim();
        setTyped(next);
        onChange(numberOf(next));
      }}
    />
  );
}

const TYPES: Readonly<Record<string, string>> = {
  date: "date",
  email: "email",
  uri: "url",
  password: "password",
};

function TextInput(
  { attributes, value, hint, onChange, format }: InputProps & {
    readonly format: string | undefined;
  },
): Element {
  const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const common = {
    ...attributes,
    value: text,
    placeholder: format === undefined ? hint : `${format}${hint === "" ? "" : `, ${hint}`}`,
    spellcheck: false,
    autocomplete: "off",
  };
  const type = format === undefined ? undefined : (TYPES[format] ?? "text");
  // The browser would show an invalid date as empty.
  const isShown = type !== "date" || text === "" || /^\d{4}-\d\d-\d\d$/.test(text);
  return type === undefined
    ? (
      <textarea
        {...common}
        rows={Math.min(12, text.split("\n").length)}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    )
    : (
      <input
        {...common}
        type={isShown ? type : "text"}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    );
}

/** An input for any value as JSON. It replaces the value whenever the text is valid JSON. */
function JsonInput({ attributes, value, hint, onChange }: InputProps): Element {
  const [typed, setTyped] = useState("");
  const read = parse(typed);
  const isCurrent = read.ok && JSON.stringify(read.value) === JSON.stringify(value);
  const [isBroken, setBroken] = useState(false);
  const text = isCurrent || isBroken ? typed : value === undefined ? "" : JSON.stringify(value);
  return (
    <>
      <textarea
        {...attributes}
        class="code"
        value={text}
        placeholder={`any JSON${hint === "" ? "" : `, ${hint}`}`}
        rows={Math.min(12, text.split("\n").length)}
        spellcheck={false}
        aria-invalid={attributes["aria-invalid"] || isBroken}
        onInput={(event) => {
          const next = event.currentTarget.value;
          setTyped(next);
          const own = parse(next);
          setBroken(!own.ok && next !== "");
          if (next === "") onChange(undefined);
          else if (own.ok) onChange(own.value);
        }}
      />
      {isBroken && <p class="wrong">This is not JSON yet; the value has not changed.</p>}
    </>
  );
}
