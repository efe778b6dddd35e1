// The form of a new map as plain values, and the spec that they stand for.

import { hashing, mapsOf } from "./families.js";
import { bodyOf } from "./fields.js";
import { number } from "./json.js";
import { initial, typed } from "./schema.js";

/** The names that the service takes. */
export const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}";
/** How rows may be prepared, as fitted to a dataset. */
export const FITS = ["standardize", "min_max", "robust", "max_abs"];

// A spec that another view hands over, to be the start of the form.
let handed = null;

/** Open the form with a spec in it. */
export function startWith(spec) {
  handed = spec;
  location.hash = "#/new";
}

/** What the form holds at first: the spec that was handed over, or a usual one. */
export function firstForm(catalog) {
  const spec = handed ?? { s: 512 };
  handed = null;
  const ofKind = (kinds, body) => {
    const values = typed(kinds[body.kind], body);
    return { kind: body.kind, values: { ...initial(kinds[body.kind]), ...values } };
  };
  return {
    name: "",
    input_dim: String(spec.input_dim ?? 16),
    s: String(spec.s ?? ""),
    seed: String(spec.seed ?? ""),
    form: spec.form ?? "",
    dtype: spec.dtype ?? "",
    normalize: spec.normalize ?? false,
    fit: spec.input ? "given" : "",
    fitDataset: "",
    input: spec.input ?? null,
    kernel: ofKind(catalog.kernels, spec.kernel ?? { kind: "gaussian" }),
    sampler: ofKind(catalog.samplers, spec.sampler ?? { kind: "halton" }),
  };
}

/** The spec that the form stands for; what is left empty is left out. */
export function specOf(catalog, form) {
  const hashes = hashing(mapsOf(catalog, form));
  const spec = {
    input_dim: number(form.input_dim),
    kernel: bodyOf(catalog.kernels, form.kernel),
    sampler: bodyOf(catalog.samplers, form.sampler),
  };
  for (const member of ["s", "seed"]) if (form[member] !== "") spec[member] = number(form[member]);
  if (form.dtype) spec.dtype = form.dtype;
  // Codes have no form: what was chosen before the sampler was is left aside.
  if (form.form && !hashes) spec.form = form.form;
  if (form.normalize && !hashes) spec.normalize = true;
  if (form.fit === "given") spec.input = form.input;
  else if (form.fit) spec.input = { fit: form.fit, dataset: form.fitDataset };
  return spec;
}
