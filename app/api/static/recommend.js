// Which map to take: samplers and sizes tried on your rows, as a chart and a table with the winner marked.

import { KindFields, Labelled, bodyOf } from "./fields.js";
import { number, stringify } from "./json.js";
import { measure, Picture, Unanswered, Waiting } from "./measured.js";
import { Figure, Heading, Loading, Notice, Table } from "./parts.js";
import { lists, Rows } from "./rows.js";
import { initial } from "./schema.js";
import { startWith } from "./specs.js";
import { askJson } from "./service.js";
import { html, useLoaded, useState, useWork } from "./view.js";
import { count, digits, duration, size, words } from "./words.js";

const MOST_ROWS = 2000;
const REACHED = "Relative error of the Gram matrix; the narrowest map that reaches it wins.";

export function Recommend() {
  const catalog = useLoaded((signal) => askJson("v1/catalog", { signal }), []);
  const note = "The service tries samplers and sizes on your rows, and ranks them by what it measures.";
  return html`<${Heading} note=${note}>Which map to take<//>
    <${Notice} problem=${catalog.problem} again=${catalog.again} />
    ${!catalog.value && !catalog.problem && html`<${Loading} what="Loading the catalogue" />`}
    ${catalog.value && html`<${Form} catalog=${catalog.value} />`}`;
}

function Form({ catalog }) {
  const [rows, setRows] = useState(null);
  const [kernel, setKernel] = useState({
    kind: "gaussian",
    values: { ...initial(catalog.kernels.gaussian), length_scale: "median" },
  });
  const [budget, setBudget] = useState("256");
  const [target, setTarget] = useState("");
  const [job, setJob] = useState(null);
  const [{ value, problem, busy }, begin] = useWork();
  const wrong = Object.fromEntries((problem?.errors ?? []).map((one) => [one.pointer, one.detail]));
  const ask = (event) => {
    event.preventDefault();
    const of = rows.dataset ? { dataset: rows.dataset } : { vectors: lists(rows, MOST_ROWS) };
    const body = { ...of, kernel: bodyOf(catalog.kernels, kernel) };
    if (budget) body.budget = number(budget);
    if (target) body.target_error = number(target);
    setJob(null);
    // As a job: it has both the ranking and its picture, tells how far it is, and can be cancelled.
    begin((signal) => measure("v1/recommendations", body, { prefer: "respond-async", heard: setJob, signal }));
  };
  const field = (
    name,
    title,
    note,
    text,
    set,
  ) => html`<${Labelled} name=${title} note=${note} error=${wrong[`/${name}`]} optional>
    ${(input) => html`<input ...${input} inputmode="decimal" autocomplete="off" value=${text}
      onInput=${(event) => set(event.target.value)} />`}<//>`;
  return html`<form onSubmit=${ask}>
    <section><h2>Your rows</h2><${Rows} onRows=${setRows} /></section>
    <div class="pair top-aligned">
      <${KindFields} title="Kernel" kinds=${catalog.kernels} value=${kernel} onChange=${setKernel} wrong=${wrong}
        pointer="/kernel" />
      <fieldset><legend>What you can afford</legend>
        ${field("budget", "Output columns", "At most so many columns of a row.", budget, setBudget)}
        ${field("target_error", "Error to reach", REACHED, target, setTarget)}
      </fieldset>
    </div>
    <div class="actions"><button disabled=${!rows || busy}>${busy ? "Trying maps …" : "Recommend a map"}</button></div>
    ${busy && html`<${Waiting} job=${job} />`}
    <${Notice} problem=${problem} />
    ${value?.job && html`<${Unanswered} job=${value.job} />`}
    ${value?.document && html`<${Ranking} of=${value.document} picture=${value.picture} />`}
  </form>`;
}

const said = (spec) =>
  `${words(spec.sampler.kind)}${spec.sampler.base ? ` over ${words(spec.sampler.base.kind)}` : ""}`;
const same = (one, other) => stringify(one) === stringify(other);

function Ranking({ of, picture }) {
  const winner = of.ranked.findIndex((trial) => same(trial.spec, of.best));
  const best = of.ranked[Math.max(0, winner)];
  const row = (trial, place) => [
    html`${place === winner ? html`<b>★ ${said(trial.spec)}</b><span class="unseen"> (the winner)</span>` : said(trial.spec)}
      ${trial.tied_with_best && place !== winner ? html` <span class="badge">as good</span>` : ""}`,
    count(trial.n_output),
    `${digits(trial.error_mean)} ± ${digits(trial.error_sd)}`,
    size(trial.bytes),
    duration(trial.seconds_per_1000_rows),
  ];
  return html`<section class="winner"><h2>★ ${said(of.best)}, ${words(of.best.kernel.kind)} kernel</h2>
      <dl class="figures small">
        <${Figure} name="Columns">${count(best.n_output)}<//>
        <${Figure} name="Error">${digits(best.error_mean)}<//>
        <${Figure} name="Kept">${size(best.bytes)}<//>
        <${Figure} name="Rows measured on">${count(of.rows)}<//>
      </dl>
      <div class="actions"><button type="button" onClick=${() => startWith(of.best)}>Create this map …</button></div>
    </section>
    <section><h2>All that was tried</h2>
      <${Picture} blob=${picture} label=${`Errors of the maps that were tried by columns; ${said(of.best)} is the best`} />
      <${Table} caption="The ranking, the best first" head=${["Sampler", "Columns", "Error", "Kept", "1,000 rows take"]}
        rows=${of.ranked.map(row)} marked=${winner} />
      ${of.notes.map((note) => html`<p class="note">${note}</p>`)}
    </section>`;
}
