// Small pieces that several views are made of.

import { html, useEffect, useRef } from "./view.js";
import { digits, heading, words } from "./words.js";

/** Whether a problem may be gone by itself: no answer, or one that says "not now". */
const mayPass = ({ status }) => status === 0 || status === 429 || status >= 500;

/** What went wrong. `again` asks anew, where that may help. */
export function Notice({ problem, kind = "bad", title, again, children }) {
  if (!problem && !children) return null;
  return html`<div class="notice ${kind}" role=${kind === "bad" ? "alert" : "note"}>
    ${(title || problem) && html`<strong>${title || problem.title}</strong>`}
    <div>${children || problem.message}</div>
    ${again && mayPass(problem) && html`<button type="button" class="plain" onClick=${again}>Try again</button>`}
  </div>`;
}

/** Warnings of the service. */
export function Warnings({ warnings }) {
  if (!warnings?.length) return null;
  return html`<section class="notice warn" aria-label="Warnings">
    <strong>${warnings.length === 1 ? "A warning" : `${warnings.length} warnings`}</strong>
    <ul>${warnings.map((text) => html`<li>${text}</li>`)}</ul>
  </section>`;
}

/** A state as a small label: ready, building, failed, queued … */
export const Badge = ({ state }) => html`<span class="badge ${state}">${state}</span>`;

export const Loading = ({ what = "Loading" }) => html`<p class="loading" role="status">${what} …</p>`;

/** A figure with its name. */
export const Figure = ({ name, children, note }) => html`<div class="figure">
  <dt>${name}</dt><dd>${children}${note && html`<small>${note}</small>`}</dd>
</div>`;

/** The head of a view. It is given the focus when the view is shown, so that readers and keyboards begin there. */
export function Heading({ children, note, actions }) {
  const head = useRef(null);
  useEffect(() => head.current.focus({ preventScroll: true }), []);
  return html`<header class="heading">
    <div><h1 tabindex="-1" ref=${head}>${children}</h1>${note && html`<p>${note}</p>`}</div>
    ${actions && html`<div class="actions">${actions}</div>`}
  </header>`;
}

/** A question before something that cannot be undone. */
export function Confirm({ open, title, children, yes, onYes, onNo }) {
  const dialog = useRef(null);
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
    if (!open && dialog.current.open) dialog.current.close();
  }, [open]);
  return html`<dialog ref=${dialog} onCancel=${onNo} aria-labelledby="question">
    <h2 id="question">${title}</h2>
    ${children}
    <div class="actions">
      <button type="button" class="plain" onClick=${onNo}>Keep it</button>
      <button type="button" class="danger" onClick=${onYes}>${yes}</button>
    </div>
  </dialog>`;
}

const shown = (value) =>
  typeof value === "number" ? digits(value) : typeof value === "boolean" ? String(value) : value;

const classOf = (cell) => (typeof cell === "number" ? "number" : "");

/** A table; a cell may be anything that can be shown. Wide ones scroll, also by keyboard. */
export function Table({ caption, head, rows, marked = -1 }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>${head.map((cell, column) => html`<th scope="col" class=${classOf(rows[0]?.[column])}>${cell}</th>`)}
      </tr></thead>
      <tbody>${rows.map(
        (cells, row) => html`<tr class=${row === marked ? "marked" : ""}>
        ${cells.map((cell) => html`<td class=${classOf(cell)}>${shown(cell)}</td>`)}
      </tr>`,
      )}</tbody>
    </table>
  </div>`;
}

const isNumber = (value) => value === null || typeof value !== "object";

/** An answer of numbers: objects as lists of names, lists of objects as tables. */
export function Numbers({ of, name = "Numbers" }) {
  if (Array.isArray(of)) {
    if (of.length && of.every((one) => one && typeof one === "object" && !Array.isArray(one))) {
      const head = Object.keys(of[0]).filter((member) => of.every((one) => isNumber(one[member])));
      const rows = of.map((one) => head.map((member) => one[member] ?? "–"));
      return html`<${Table} caption=${heading(name)} head=${head.map(words)} rows=${rows} />`;
    }
    return html`<code>${of.map((one) => (typeof one === "number" ? digits(one) : JSON.stringify(one))).join(", ")}</code>`;
  }
  const members = Object.entries(of);
  return html`
    <dl class="figures small">${members
      .filter(([, value]) => isNumber(value))
      .map(([member, value]) => html`<${Figure} name=${words(member)}>${shown(value ?? "–")}<//>`)}</dl>
    ${members
      .filter(([, value]) => !isNumber(value))
      .map(([member, value]) => html`<h4>${heading(member)}</h4><${Numbers} of=${value} name=${member} />`)}`;
}
