// What the catalogue says of the maps of a sampler: what they give, what `s` counts, how they are measured and exported.

/** What the maps of a spec's sampler are. */
export const mapsOf = (catalog, { sampler }) => catalog.samplers[sampler.kind].maps;

/** Whether maps give codes and no features: then they have no form. */
export const hashing = ({ gives }) => !gives.includes("features");
