// Which family the maps of a sampler are of, as far as the page shows them differently.

const HASHING = new Set(["gcws", "dart_minhash"]);

/** Whether a spec is one of hashes: its map gives codes, and has no form. */
export const hashing = ({ sampler }) => HASHING.has(sampler.kind);

/** Whether a spec is one of landmarks: its map has no frequencies. */
export const onLandmarks = ({ sampler }) => sampler.kind.includes("landmarks");

/** What a spec has `s` of, as a heading. */
export function whatItHas(spec) {
  if (hashing(spec)) return "Hashes";
  return onLandmarks(spec) ? "Landmarks" : "Frequencies";
}
