// The HTTP interface of the service, with the key of whoever looks. All else goes through here.

import { parse, stringify } from "./json.js";

const KEY = "bochner-key";
const listeners = new Set();

/** A refusal of the service, or the want of an answer. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail || document.title || "The service did not answer.");
    this.title = document.title || "No answer";
    this.status = document.status || 0;
    this.errors = document.errors || [];
    this.job = document.job || null;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) || "",
  set(text) {
    if (text) sessionStorage.setItem(KEY, text);
    else sessionStorage.removeItem(KEY);
  },
};

/** Call `listener` whenever the service asks for a key; gives a function that ends it. */
export function onKeyWanted(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The address of a path of the service, below whatever prefix this page is at. */
export function address(path) {
  return new URL(path.replace(/^\/+/, ""), document.baseURI).href;
}

/** The path of a map, dataset or job, or of something below it. */
export function pathOf(family, name, ...below) {
  return ["v1", family, name, ...below].map(encodeURIComponent).join("/");
}

/** Ask the service. `body` may be an object, which is sent as JSON, or an ArrayBuffer, a .npy. */
export async function ask(path, { method = "GET", body, accept = "application/json", prefer, headers, signal } = {}) {
  const sent = { Accept: accept, ...headers };
  if (key.get()) sent.Authorization = `Bearer ${key.get()}`;
  if (prefer) sent.Prefer = prefer;
  if (body !== undefined) sent["Content-Type"] = body instanceof ArrayBuffer ? "application/x-npy" : "application/json";
  const content = body === undefined || body instanceof ArrayBuffer ? body : stringify(body);
  let answer;
  try {
    // Without cookies, and without a name and password that the browser may know.
    answer = await fetch(address(path), { method, headers: sent, body: content, signal, credentials: "omit" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({ detail: "The service cannot be reached." });
  }
  if (answer.ok) return answer;
  const problem = new Problem(await answer.json().catch(() => ({ status: answer.status, title: answer.statusText })));
  problem.status = answer.status;
  if (answer.status === 401) listeners.forEach((listener) => listener(problem));
  throw problem;
}

/** Ask for JSON. Numbers that JSON has no words for come as null. */
export async function askJson(path, options) {
  return parse(await (await ask(path, options)).text());
}

/** Ask for a file, and have the browser save it. */
export async function download(path, name, options) {
  const answer = await ask(path, { accept: "*/*", ...options });
  save(await answer.blob(), name);
}

/** Have the browser save some bytes. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
