// The page: its head, the key, and the view that the address after # names.

import { Compare } from "./compare.js";
import { Create } from "./create.js";
import { Datasets } from "./datasets.js";
import { Errors } from "./errors.js";
import { Index, Indexes } from "./indexes.js";
import { Job, Jobs } from "./jobs.js";
import { MapHead } from "./map.js";
import { Maps } from "./maps.js";
import { Notice } from "./parts.js";
import { Recommend } from "./recommend.js";
import { address, askJson, key, onKeyWanted } from "./service.js";
import { count, size } from "./words.js";
import { html, render, useEffect, useLoaded, useRef, useState } from "./view.js";

const SECTIONS = [
  ["maps", "Maps"],
  ["new", "New map"],
  ["indexes", "Indexes"],
  ["datasets", "Datasets"],
  ["recommend", "Recommend"],
  ["jobs", "Jobs"],
];

/** The parts of the address after #, each as it was before it was escaped. */
function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return ["maps"];
  }
}

function View({ parts: [section, name, tab] }) {
  if (section === "new") return html`<${Create} />`;
  if (section === "indexes") return name ? html`<${Index} name=${name} key=${name} />` : html`<${Indexes} />`;
  if (section === "datasets") return html`<${Datasets} />`;
  if (section === "recommend") return html`<${Recommend} />`;
  if (section === "jobs") return name ? html`<${Job} id=${name} key=${name} />` : html`<${Jobs} />`;
  if (section === "maps" && name) {
    const Tab = { errors: Errors, try: Compare }[tab];
    return html`<${MapHead} name=${name} tab=${tab || "overview"} key=${name} Tab=${Tab} />`;
  }
  return html`<${Maps} />`;
}

/** A field for the key. What is typed stays in this tab of the browser, and is forgotten with it. */
function KeyDialog({ open, problem, onDone }) {
  const dialog = useRef(null);
  const [text, setText] = useState("");
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
    if (!open && dialog.current.open) dialog.current.close();
  }, [open]);
  const use = (event) => {
    event.preventDefault();
    key.set(text.trim());
    setText("");
    onDone(true);
  };
  const forget = () => {
    key.set("");
    onDone(true);
  };
  return html`<dialog ref=${dialog} onCancel=${() => onDone(false)} aria-labelledby="key-title">
    <form onSubmit=${use}>
      <h2 id="key-title">Your key</h2>
      <p>The service may want a key, and shows no data without it. It is kept in this tab until you close it.</p>
      <${Notice} problem=${problem} title="A key is wanted" />
      <label>Key
        <input type="password" name="key" autocomplete="off" spellcheck="false" value=${text}
          onInput=${(event) => setText(event.target.value)} />
      </label>
      <div class="actions">
        ${key.get() && html`<button type="button" class="plain" onClick=${forget}>Forget it</button>`}
        <button type="button" class="plain" onClick=${() => onDone(false)}>Close</button>
        <button>Use this key</button>
      </div>
    </form>
  </dialog>`;
}

function Page() {
  const [parts, setParts] = useState(route());
  const [asking, setAsking] = useState(false);
  const [wanted, setWanted] = useState(null);
  const [turn, setTurn] = useState(0);
  const info = useLoaded((signal) => askJson("v1/info", { signal }), [turn]);
  useEffect(() => {
    const moved = () => setParts(route());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(
    () =>
      onKeyWanted((problem) => {
        setWanted(problem);
        setAsking(true);
      }),
    [],
  );
  useEffect(() => {
    const title = SECTIONS.find(([section]) => section === parts[0])?.[1] ?? "Maps";
    document.title = `${parts[1] ? `${parts[1]} · ` : ""}${title} · Bochner`;
    scrollTo(0, 0);
  }, [parts]);
  const done = (changed) => {
    setAsking(false);
    setWanted(null);
    if (changed) setTurn(turn + 1);
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/maps"><${Logo} />Bochner</a>
      <nav aria-label="Sections">${SECTIONS.map(
        ([section, title]) => html`
        <a href=${`#/${section}`} aria-current=${(parts[0] || "maps") === section ? "page" : null}>${title}</a>`,
      )}
      </nav>
      <div class="aside">
        <a href=${address("docs")}>API</a>
        <button type="button" class="plain" onClick=${() => setAsking(true)}>${key.get() ? "Key in use" : "Key"}</button>
      </div>
    </header>
    <main id="main" tabindex="-1"><${View} parts=${parts} key=${`${turn}/${parts.slice(0, 2).join("/")}`} /></main>
    <footer>${info.value && kept(info.value)}</footer>
    <${KeyDialog} open=${asking} problem=${wanted} onDone=${done} />`;
}

const kept = ({ versions, usage }) =>
  `Bochner ${versions.bochner}, which keeps ${size(usage.bytes)} under ${count(usage.names)} names`;

/** Move the focus past the head, and leave the address as it is. */
function skip(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

const Logo = () => html`<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
  <rect width="32" height="32" rx="8" class="logo-ground" />
  <path d="M4 16c2-9 4-9 6 0s4 9 6 0 4-9 6 0 4 9 6 0" class="logo-wave" />
  <circle cx="16" cy="16" r="2.6" class="logo-point" />
</svg>`;

render(html`<${Page} />`, document.getElementById("page"));
