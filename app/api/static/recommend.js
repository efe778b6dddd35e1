// Which map to take: samplers and sizes tried on your rows, as a chart and a table with the winner marked.

import { KindFields, Labelled, bodyOf } from "./fields.js";
import { number, stringify } from "./json.js";
import { labelled, share, sources } from "./labels.js";
import { measure, Picture, Unanswered, Waiting } from "./measured.js";
import { Figure, Heading, Loading, Notice, Table } from "./parts.js";
import { Rows } from "./rows.js";
import { initial } from "./schema.js";
import { FITS, startWith } from "./specs.js";
import { askJson } from "./service.js";
import { html, useLoaded, useState, useWork } from "./view.js";
import { count, digits, duration, size, words } from "./words.js";

const NOTES = {
  budget: "At most this many columns per row.",
  target_error: "Relative error of the Gram matrix; the narrowest map that reaches it wins.",
  seeds: "Maps to measure of each spec. Empty means 3; more maps give narrower intervals.",
  input: "Center and scale each column first, as fitted to these rows.",
  labels: "With labels, maps are ranked by how well a linear model on their features predicts them.",
  label_column: "Counted from 0. Empty means the last one.",
};

export function Recommend() {
  const catalog = useLoaded((signal) => askJson("v1/catalog", { signal }), []);
  const note = "The service tries samplers and sizes on your rows, and ranks them by what it measures.";
  return html`<${Heading} note=${note}>Which map to take<//>
    <${Notice} problem=${catalog.problem} again=${catalog.again} />
    ${!catalog.value && !catalog.problem && html`<${Loading} what="Loading the catalogue" />`}
    ${catalog.value && html`<${Form} catalog=${catalog.value} />`}`;
}

/** Choices of a select: pairs of a value and what is shown. */
const options = (pairs) => pairs.map(([value, shown]) => html`<option value=${value}>${shown}</option>`);
const MODES = [
  ["", "full"],
  ["quick", "quick: wider intervals"],
];

function Form({ catalog }) {
  const kernelOf = (kind) => {
    const values = initial(catalog.kernels[kind]);
    return { kind, values: "length_scale" in values ? { ...values, length_scale: "median" } : values };
  };
  const [rows, setRows] = useState(null);
  const [kernels, setKernels] = useState(() => [kernelOf("gaussian")]);
  const [form, setForm] = useState({ budget: "256", labels: "", label_column: "", label_list: "", label_dataset: "" });
  const [job, setJob] = useState(null);
  const [{ value, problem, busy }, begin] = useWork();
  const wrong = Object.fromEntries((problem?.errors ?? []).map((one) => [one.pointer, one.detail]));
  const several = kernels.length > 1;
  const ask = (event) => {
    event.preventDefault();
    const bodies = kernels.map((one) => bodyOf(catalog.kernels, one));
    setJob(null);
    // As a job: it has both the ranking and its picture, tells how far it is, and can be cancelled.
    begin(async (signal) => {
      const body = { ...labelled(rows, form), kernel: several ? bodies : bodies[0] };
      for (const name of ["budget", "target_error", "seeds"]) if (form[name]) body[name] = number(form[name]);
      for (const name of ["input", "mode"]) if (form[name]) body[name] = form[name];
      return measure("v1/recommendations", body, { prefer: "respond-async", heard: setJob, signal });
    });
  };
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value });
  const field = (name, title, made, pointer = `/${name}`) => html`<${Labelled} name=${title} note=${NOTES[name]}
    error=${wrong[pointer]} optional>${made}<//>`;
  const typed = (name, title, pointer) =>
    field(
      name,
      title,
      (input) => html`<input ...${input} inputmode="decimal" autocomplete="off" value=${form[name] ?? ""}
        onInput=${set(name)} />`,
      pointer,
    );
  const chosen = (name, title, pairs) =>
    field(name, title, (input) => html`<select ...${input} value=${form[name] ?? ""} onChange=${set(name)}>
      ${options(pairs)}</select>`);
  const left = Object.keys(catalog.kernels).filter((kind) => !kernels.some((one) => one.kind === kind));
  return html`<form onSubmit=${ask}>
    <section><h2>Your rows</h2><${Rows} onRows=${setRows} />
      <div class="pair top-aligned">
        ${chosen("input", "Prepare rows", [["", "as they are"], ...FITS.map((one) => [one, words(one)])])}
        ${chosen("labels", "Labels", sources(rows))}
      </div>
      ${form.labels === "column" && typed("label_column", "Column of the labels", "/y")}
      ${
        form.labels === "list" &&
        field(
          "label_list",
          "One label for each row, in order",
          (input) => html`<textarea ...${input} rows="3" spellcheck="false" placeholder="cat, dog, cat"
            onInput=${set("label_list")}>${form.label_list}</textarea>`,
          "/y",
        )
      }
      ${form.labels === "dataset" && typed("label_dataset", "Dataset of the labels", "/y")}
      ${share(rows) && html`<p class="note">${share(rows)}</p>`}
    </section>
    <div class="pair top-aligned">
      <div>${kernels.map((kernel, place) => {
        const become = (...now) => setKernels(kernels.toSpliced(place, 1, ...now));
        return html`<${KindFields} key=${place} title=${several ? `Kernel ${place + 1}` : "Kernel"} kinds=${catalog.kernels}
            value=${kernel} onChange=${become} wrong=${wrong} pointer=${several ? `/kernel/${place}` : "/kernel"} />
          ${
            several &&
            html`<div class="actions"><button type="button" class="plain" onClick=${() => become()}>
              Leave out kernel ${place + 1}</button></div>`
          }`;
      })}
        ${
          left.length > 0 &&
          html`<div class="actions"><button type="button" class="plain"
            onClick=${() => setKernels([...kernels, kernelOf(left[0])])}>Compare with another kernel</button></div>`
        }
      </div>
      <fieldset><legend>What you can afford</legend>
        ${typed("budget", "Output columns")}
        ${typed("target_error", "Error to reach")}
        ${typed("seeds", "Seeds")}
        ${chosen("mode", "Mode", MODES)}
      </fieldset>
    </div>
    <div class="actions"><button disabled=${!rows || busy}>${busy ? "Trying maps …" : "Recommend a map"}</button></div>
    ${busy && html`<${Waiting} job=${job} />`}
    ${job && html`<p class="note">The result stays at <a href=${`#/jobs/${job.id}`}>the page of its job</a>.</p>`}
    <${Notice} problem=${problem} />
    ${value?.job && html`<${Unanswered} job=${value.job} />`}
    ${value?.document && html`<${Ranking} of=${value.document} picture=${value.picture} />`}
  </form>`;
}

const said = (spec) =>
  `${words(spec.sampler.kind)}${spec.sampler.base ? ` over ${words(spec.sampler.base.kind)}` : ""}`;
const same = (one, other) => stringify(one) === stringify(other);

/** A kernel of a spec, with its length scale. */
const kernelSaid = ({ kind, length_scale: scale }) =>
  `${words(kind)}${typeof scale === "number" ? `, length scale ${digits(scale)}` : ""}`;

/** A recommendation: the winner, the picture, and a table of all that was tried. */
export function Ranking({ of, picture }) {
  const winner = of.ranked.findIndex((trial) => same(trial.spec, of.best));
  const best = of.ranked[Math.max(0, winner)];
  const scored = typeof best.score_mean === "number";
  const figure = scored ? "score" : "error";
  const row = (trial, place) => [
    html`<button type="button" class="bare link" title="Create this map" onClick=${() => startWith(trial.spec)}>${
      place === winner ? html`<b>★ ${said(trial.spec)}</b><span class="unseen"> (the winner)</span>` : said(trial.spec)
    }</button>
      ${trial.tied_with_best && place !== winner ? html` <span class="badge">as good</span>` : ""}`,
    kernelSaid(trial.spec.kernel),
    count(trial.n_output),
    trial.maps > 1
      ? `${digits(trial[`${figure}_mean`])} ± ${digits(trial[`${figure}_sd`])}`
      : digits(trial[`${figure}_mean`]),
    digits(trial[`choosing_${figure}`]),
    size(trial.bytes),
    duration(trial.seconds_per_1000_rows),
  ];
  return html`<section class="winner"><h2>★ ${said(of.best)}, ${words(of.best.kernel.kind)} kernel</h2>
      <dl class="figures small">
        <${Figure} name="Columns">${count(best.n_output)}<//>
        ${scored && html`<${Figure} name="Score">${digits(best.score_mean)}<//>`}
        ${of.baselines.map((one) => html`<${Figure} name=${`Score without a map: ${words(one.name)}`}>${digits(one.score)}<//>`)}
        <${Figure} name="Error">${digits(best.error_mean)}<//>
        <${Figure} name="Size">${size(best.bytes)}<//>
        <${Figure} name="Rows measured on">${count(of.rows)}<//>
      </dl>
      <div class="actions"><button type="button" onClick=${() => startWith(of.best)}>Create this map …</button></div>
    </section>
    <section><h2>All that was tried</h2>
      <${Picture} blob=${picture} label=${`${scored ? "Scores" : "Errors"} of the maps that were tried by columns; ${said(of.best)} is the best`} />
      <${Table} caption="The ranking, the best first"
        head=${["Sampler", "Kernel", "Columns", scored ? "Score" : "Error", "Ranked by", "Size", "1,000 rows take"]}
        rows=${of.ranked.map(row)} marked=${winner} />
      <p class="note">${
        scored
          ? "A score is the share of classes predicted right, or R² for numbers, on rows that had no part in the ranking."
          : "An error is that of the Gram matrix, relative to its norm, on rows that had no part in the ranking."
      } “Ranked by” is the same on the other rows. A map that is as good as the winner does not differ from it significantly.
        Click on a sampler to create its map.</p>
      ${of.notes.map((note) => html`<p class="note">${note}</p>`)}
    </section>`;
}
