// Fields of a form, made from the schemas of the catalogue.

import { built, initial, members } from "./schema.js";
import { html, useEffect, useState } from "./view.js";
import { heading, words } from "./words.js";

const SCALES = ["nearest_neighbor", "median"];
const FROM_ROWS = `Or ${SCALES.join(" or ")}, of rows.`;
let numberOfFields = 0;

/** A field with its name, what it means, and what is wrong with it. `children` is given what the input must have. */
export function Labelled({ name, note, error, optional, children }) {
  const [id] = useState(() => `field-${(numberOfFields += 1)}`);
  const described = [note && `${id}-note`, error && `${id}-error`].filter(Boolean).join(" ");
  return html`<div class=${`field ${error ? "wrong" : ""}`}>
    <label for=${id}>${name}${optional && html` <i>optional</i>`}</label>
    ${children({ id, "aria-describedby": described || null, "aria-invalid": error ? "true" : null })}
    ${note && html`<p class="note" id=${`${id}-note`}>${note}</p>`}
    ${error && html`<p class="error" id=${`${id}-error`}>${error}</p>`}
  </div>`;
}

/** The default of a field, as it would be typed. */
function shown(value) {
  if (value === undefined || value === null || typeof value === "object") return "";
  return String(value);
}

const Select = ({ input, value, onChange, options, empty }) => html`<select ...${input} value=${value ?? ""}
  onChange=${(event) => onChange(event.target.value)}>
  ${empty !== undefined && html`<option value="">${empty}</option>`}
  ${options.map((one) => html`<option value=${one}>${words(one)}</option>`)}
</select>`;

const Flag = ({ input, field, value, onChange }) => html`<input type="checkbox" ...${input}
  checked=${value ?? field.schema.default} onChange=${(event) => onChange(event.target.checked)} />`;

function Choices({ input, field, value, onChange }) {
  const chosen = value || field.schema.default || [];
  const toggled = (one) => (chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]);
  return html`<div role="group" ...${input} class="choices">${field.options.map(
    (one) => html`<label>
    <input type="checkbox" checked=${chosen.includes(one)} onChange=${() => onChange(toggled(one))} />${words(one)}</label>`,
  )}</div>`;
}

function Input({ input, name, field, value, onChange, datasets }) {
  const typed = (event) => onChange(event.target.value);
  const placeholder = Array.isArray(field.schema.default)
    ? field.schema.default.join(", ")
    : shown(field.schema.default);
  const text = { ...input, value: value ?? "", placeholder, spellcheck: false, autocomplete: "off", onInput: typed };
  if (field.type === "choice") {
    const empty = field.required ? undefined : field.schema.default ? `${words(field.schema.default)} (default)` : "–";
    return html`<${Select} input=${input} value=${value} onChange=${onChange} options=${field.options} empty=${empty} />`;
  }
  if (field.type === "dataset") {
    return html`<${Select} input=${input} value=${value} onChange=${onChange} options=${datasets ?? []} empty="–" />`;
  }
  if (field.type === "flag") return html`<${Flag} input=${input} field=${field} value=${value} onChange=${onChange} />`;
  if (field.type === "choices")
    return html`<${Choices} input=${input} field=${field} value=${value} onChange=${onChange} />`;
  if (field.type === "json") return html`<textarea rows="3" ...${text} placeholder="JSON"></textarea>`;
  const list = name === "length_scale" ? "scales" : null;
  return html`<input ...${text} list=${list} inputmode=${field.type === "number" ? "decimal" : null} />`;
}

/** The sampler that another begins with: a kind, and the fields of that. */
function Nested({ name, field, value, onChange, ...rest }) {
  const kind = value?.kind ?? "";
  const changed = (one) => onChange(one ? { kind: one, values: initial(field.kinds[one]) } : "");
  const usual = field.schema.default?.kind;
  return html`<${Labelled} name=${heading(name)} note=${field.schema.description} optional=${!field.required}>
    ${(input) => html`<${Select} input=${input} value=${kind} onChange=${changed} options=${Object.keys(field.kinds)}
      empty=${usual ? `${words(usual)} (default)` : "–"} />`}<//>
    ${
      kind &&
      html`<fieldset><legend>${heading(kind)}</legend><${Fields} ...${rest} schema=${field.kinds[kind]}
      values=${value.values} onChange=${(values) => onChange({ kind, values })} /></fieldset>`
    }`;
}

/** What is wrong with a member, or with something inside it. */
function wrongAt(wrong, pointer) {
  const inside = Object.keys(wrong).find((one) => one.startsWith(`${pointer}/`));
  return wrong[pointer] ?? wrong[inside];
}

/** Fields that few need. They come to light when something is wrong with them, and then stay. */
function More({ isWrong, children }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (isWrong) setOpen(true);
  }, [isWrong]);
  return html`<details open=${open} onToggle=${(event) => setOpen(event.target.open)}>
    <summary>More options</summary>${children}</details>`;
}

// What one kind shares with another: lengths, boxes and sizes. Choices of one may not be there in the other.
const CARRIED = new Set(["number", "numbers", "dataset"]);

/** The values that a kind begins with, after another: what both have stays as it was typed. */
function carriedOver(kinds, kind, before) {
  const of = (one) => new Map(members(kinds[one]).map(([name, field]) => [name, field.type]));
  const [old, now] = [of(before.kind), of(kind)];
  const shared = Object.entries(before.values).filter(
    ([name]) => CARRIED.has(now.get(name)) && now.get(name) === old.get(name),
  );
  return { ...initial(kinds[kind]), ...Object.fromEntries(shared) };
}

/** The fields of one kind. `wrong` has what is wrong by the pointers of the members below `pointer`. */
export function Fields({ schema, values, onChange, wrong = {}, pointer = "", datasets = null }) {
  const all = members(schema);
  const set = (name, value) => onChange({ ...values, [name]: value });
  const one = ([name, field]) => {
    const [error, change] = [wrongAt(wrong, `${pointer}/${name}`), (value) => set(name, value)];
    const own = { name, field, value: values[name], onChange: change, datasets };
    if (field.type === "kind") return html`<${Nested} ...${own} wrong=${wrong} pointer=${`${pointer}/${name}`} />`;
    const isScale = name === "length_scale";
    const note = isScale ? `${field.schema.description} ${FROM_ROWS}` : field.schema.description;
    const said = { name: heading(name), note, error, optional: !field.required && field.type !== "flag" && !isScale };
    return html`<${Labelled} key=${name} ...${said}>
      ${(input) => html`<${Input} ...${own} input=${input} />`}<//>`;
  };
  const [seen, others] = [true, false].map((wanted) => all.filter(([, , isSeen]) => isSeen === wanted));
  // What is wrong with the kind as a whole may be that one of these is missing.
  const isWrong = wrong[pointer] !== undefined || others.some(([name]) => wrongAt(wrong, `${pointer}/${name}`));
  const fromRows = datasets && SCALES.includes(values.length_scale) && !schema.properties.dataset;
  return html`${seen.map(one)}
    ${
      fromRows &&
      html`<${Labelled} name="Dataset" note="Whose rows the length scale is taken from." error=${wrong[`${pointer}/dataset`]}>
      ${(input) => html`<${Select} input=${input} value=${values.dataset} options=${datasets} empty="–"
        onChange=${(value) => set("dataset", value)} />`}<//>`
    }
    ${others.length > 0 && html`<${More} isWrong=${isWrong}>${others.map(one)}<//>`}
    ${
      "length_scale" in schema.properties &&
      html`<datalist id="scales">${SCALES.map((word) => html`<option value=${word} />`)}</datalist>`
    }`;
}

/** A choice of a kind, what is said of it in the catalogue, and its fields. `value` is { kind, values }. */
export function KindFields({ title, kinds, value, onChange, wrong, pointer, datasets }) {
  const schema = kinds[value.kind];
  const chosen = (kind) => onChange({ kind, values: carriedOver(kinds, kind, value) });
  return html`<fieldset><legend>${title}</legend>
    <${Labelled} name="Kind" note=${schema.description?.split("\n")[0]} error=${wrong?.[pointer] ?? wrong?.[`${pointer}/kind`]}>
      ${(input) => html`<${Select} input=${input} value=${value.kind} onChange=${chosen} options=${Object.keys(kinds)} />`}<//>
    <${Fields} schema=${schema} values=${value.values} wrong=${wrong} pointer=${pointer} datasets=${datasets}
      onChange=${(values) => onChange({ ...value, values })} />
    <details class="advice"><summary>When to take it</summary>
      <p>${schema.choose_when}</p>
      ${schema.limits && html`<ul>${schema.limits.map((limit) => html`<li>${limit}</li>`)}</ul>`}
      <p class="note">${schema.source}</p></details>
  </fieldset>`;
}

/** The body of a choice. */
export const bodyOf = (kinds, { kind, values }) => built(kinds[kind], values, kind);
