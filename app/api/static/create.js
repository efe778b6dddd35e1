// A new map: a form made from the catalogue, with a preview.

import { hashing, mapsOf } from "./families.js";
import { KindFields, Labelled } from "./fields.js";
import { parse, stringify } from "./json.js";
import { Heading, Loading, Notice } from "./parts.js";
import { Preview, tried, wrongIn } from "./preview.js";
import { ask, askJson, pathOf } from "./service.js";
import { FITS, firstForm, NAME, specOf } from "./specs.js";
import { html, useLoaded, useSettled, useState, useWork } from "./view.js";
import { heading, words } from "./words.js";

const PAUSE_MILLISECONDS = 250;
const NOTES = {
  input_dim: "d, the length of a vector that is posted.",
  s: "s. Not needed for a rule that has a number of its own.",
  dtype: "In which arrays are frozen and features computed.",
  seed: "Source of every random choice; 0 if it is left empty.",
  normalize: "Scale each feature row to unit L2 norm.",
  fit: "Center and scale each column first.",
};

export function Create() {
  const catalog = useLoaded((signal) => askJson("v1/catalog", { signal }), []);
  const datasets = useLoaded((signal) => askJson("v1/datasets?limit=1000", { signal }), []);
  const ready = catalog.value && (datasets.value || datasets.problem);
  const names = datasets.value?.datasets.map((one) => one.name) ?? [];
  const note = "A map is drawn once and never changes. As you type, the service tries the spec and stores nothing.";
  return html`
    <${Heading} note=${note}>New map<//>
    <${Notice} problem=${catalog.problem} again=${catalog.again} />
    ${!ready && !catalog.problem && html`<${Loading} what="Loading the catalogue" />`}
    ${ready && html`<${Form} catalog=${catalog.value} datasets=${names} />`}`;
}

function Form({ catalog, datasets }) {
  const [form, setForm] = useState(() => firstForm(catalog));
  const [creating, begin] = useWork();
  const spec = specOf(catalog, form);
  // So that a name that another spec has is told too.
  const name = new RegExp(`^${NAME}$`).test(form.name) ? form.name : "unnamed";
  const asked = useSettled(stringify([name, spec]), PAUSE_MILLISECONDS);
  const preview = useLoaded((signal) => tried(...parse(asked), signal), [asked]);
  const wrong = wrongIn(preview.problem);
  const set = (member) => (value) => setForm((before) => ({ ...before, [member]: value }));
  const put = (event) => {
    event.preventDefault();
    begin(async (signal) => {
      await ask(pathOf("maps", form.name), { method: "PUT", body: spec, signal });
      location.hash = `#/maps/${encodeURIComponent(form.name)}`;
    });
  };
  const own = { form, set, wrong, catalog, datasets };
  const kind = (title, pointer, kinds) => html`<${KindFields} title=${title} kinds=${kinds} value=${form[pointer]}
    onChange=${set(pointer)} wrong=${wrong} pointer=${`/${pointer}`} datasets=${datasets} />`;
  return html`<form class="create" onSubmit=${put}>
    <div class="fields">
      <${Head} ...${own} />
      ${kind("Kernel", "kernel", catalog.kernels)}
      ${kind("Sampler", "sampler", catalog.samplers)}
      <${Features} ...${own} />
    </div>
    <aside class="preview" aria-label="Preview">
      <${Preview} preview=${preview} family=${mapsOf(catalog, spec)} name=${form.name} spec=${spec} busy=${creating.busy} />
      <${Notice} problem=${creating.problem} />
    </aside>
  </form>`;
}

/** A member of the spec as a text, or as one of some options, which are pairs of a value and what is shown. */
function Member({ member, title, form, set, wrong, options, note = NOTES[member], optional = true, ...more }) {
  const changed = (event) => set(member)(event.target.value);
  const field = (input) =>
    options
      ? html`<select ...${input} value=${form[member]} onChange=${changed}>
          ${options.map(([value, shown]) => html`<option value=${value}>${shown}</option>`)}</select>`
      : html`<input ...${input} ...${more} value=${form[member]} onInput=${changed} autocomplete="off" spellcheck="false" />`;
  return html`<${Labelled} name=${title} note=${note} error=${wrong[`/${member}`]} optional=${optional}>${field}<//>`;
}

function Head({ form, set, wrong, catalog }) {
  const own = { form, set, wrong };
  return html`<fieldset><legend>Map</legend>
    <${Member} ...${own} member="name" title="Name" note="Letters, digits, dots, dashes and underscores." optional=${false}
      required pattern=${NAME} />
    <${Member} ...${own} member="input_dim" title="Numbers in a vector" optional=${false} inputmode="numeric" />
    <${Member} ...${own} member="s" title=${heading(mapsOf(catalog, form).s)} inputmode="numeric" />
  </fieldset>`;
}

function Features({ form, set, wrong, catalog, datasets }) {
  const own = { form, set, wrong };
  const pairs = (names) => names.map((one) => [one, words(one)]);
  const forms = [["", "cos sin (default)"], ...pairs(Object.keys(catalog.forms))];
  const norm = html`<${Labelled} name="Unit norm" note=${NOTES.normalize} error=${wrong["/normalize"]}>
    ${(input) => html`<input type="checkbox" ...${input} checked=${form.normalize}
      onChange=${(event) => set("normalize")(event.target.checked)} />`}<//>`;
  const hashes = hashing(mapsOf(catalog, form));
  const described = catalog.forms[form.form || "cos_sin"].description;
  const dtypes = [["", "float32 (default)"], ...pairs(["float32", "float64"])];
  const named = [["", "–"], ...datasets.map((one) => [one, one])];
  return html`<fieldset><legend>${hashes ? "Codes" : "Features"}</legend>
    ${!hashes && html`<${Member} ...${own} member="form" title="Form" note=${described} options=${forms} />${norm}`}
    <${Member} ...${own} member="dtype" title="Precision" options=${dtypes} />
    <${Member} ...${own} member="seed" title="Seed" inputmode="numeric" />
    ${
      (datasets.length > 0 || form.input) &&
      html`<${Member} ...${own} member="fit" title="Prepare rows"
        options=${[["", "as they are"], ...(form.input ? [["given", "as in the spec"]] : []), ...pairs(datasets.length ? FITS : [])]} />`
    }
    ${form.fit && form.fit !== "given" && html`<${Member} ...${own} member="fitDataset" title="Fitted to" note="" options=${named} />`}
  </fieldset>`;
}
