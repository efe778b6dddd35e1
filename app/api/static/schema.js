// What a JSON Schema of the catalogue wants in a field, and how what was typed becomes a member of a body.

/** The schema that a reference leads to, with what stands beside the reference. */
function resolved(schema, root) {
  if (!schema.$ref) return schema;
  const target = schema.$ref
    .replace("#/", "")
    .split("/")
    .reduce((at, step) => at[step], root);
  return { ...target, ...schema };
}

/** The alternatives of a schema, but for null. */
function alternatives(schema, root) {
  const several = schema.anyOf ?? schema.oneOf;
  if (!several) return [schema];
  return several.flatMap((one) => alternatives(resolved(one, root), root)).filter((one) => one.type !== "null");
}

const isNumber = (schema) => schema.type === "number" || schema.type === "integer";
const isNumbers = (schema) => schema.type === "array" && schema.items && isNumber(schema.items);

/** What kind of field serves a member: flag, choice, kind, number, numbers, dataset, text or json. */
export function fieldOf(name, schema, root) {
  const whole = resolved(schema, root);
  const several = alternatives(whole, root);
  const [one] = several;
  const of = (type, more = {}) => ({ type, schema: whole, ...more });
  if (whole.discriminator) {
    const kinds = several.map((kind) => [kind.properties.kind.const, { ...kind, $defs: root.$defs }]);
    return of("kind", { kinds: Object.fromEntries(kinds) });
  }
  if (several.length === 1 && one.enum) return of("choice", { options: one.enum });
  if (several.length === 1 && one.type === "boolean") return of("flag");
  if (several.length === 1 && isNumber(one)) return of("number", { bounds: one });
  if (several.every((each) => isNumber(each) || isNumbers(each))) return of("numbers");
  if (several.length === 1 && one.type === "string") return of(name === "dataset" ? "dataset" : "text");
  if (several.length === 1 && one.type === "array" && one.items && resolved(one.items, root).enum) {
    return of("choices", { options: resolved(one.items, root).enum });
  }
  return of("json");
}

/** The members of a kind, but for the one that names it: [name, field, whether it is to be seen at once]. */
export function members(schema) {
  const wanted = new Set(schema.required);
  return Object.entries(schema.properties)
    .filter(([name]) => name !== "kind")
    .map(([name, one]) => {
      const field = fieldOf(name, one, schema);
      const isSeen = wanted.has(name) || field.schema.default !== null || ["box", "dataset"].includes(name);
      return [name, { ...field, required: wanted.has(name) }, isSeen];
    });
}

/** What to begin with in a field that must be filled in. */
function first(name, field) {
  if (field.type === "number") {
    const { minimum = 0, maximum = Infinity, type } = field.bounds;
    return String(Math.min(maximum, Math.max(minimum, type === "integer" ? 2 : 1)));
  }
  return field.type === "numbers" ? "1" : "";
}

/** The values of a kind to begin with. */
export function initial(schema) {
  const values = {};
  for (const [name, field] of members(schema)) {
    if (field.required || name === "length_scale") values[name] = first(name, field);
  }
  return values;
}

/** A number, or a list of them, or the text where it is neither: the service then says what is wrong with it. */
function numbers(text) {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  const found = parts.map(Number);
  if (!parts.length || found.some(Number.isNaN)) return text;
  return found.length > 1 || text.includes(",") ? found : found[0];
}

function member(field, value) {
  if (field.type === "number") return numbers(value);
  if (field.type === "numbers") {
    const one = numbers(value);
    // Where a list is wanted, one number is a list of one.
    return field.schema.type === "array" && typeof one === "number" ? [one] : one;
  }
  if (field.type === "json") {
    try {
      return JSON.parse(value);
    } catch {
      return value;
    }
  }
  return value;
}

/** The body that values of a kind stand for; what is left empty is left out. */
export function built(schema, values, kind) {
  const body = kind ? { kind } : {};
  const known = new Set();
  for (const [name, field] of members(schema)) {
    known.add(name);
    const value = values[name];
    if (value === undefined || value === "") continue;
    if (field.type === "kind") {
      if (value.kind) body[name] = built(field.kinds[value.kind], value.values ?? {}, value.kind);
    } else {
      body[name] = member(field, value);
    }
  }
  // A length scale that is a word is taken from a dataset, which is then named beside it.
  if (!known.has("dataset") && typeof body.length_scale === "string" && values.dataset) body.dataset = values.dataset;
  return body;
}

/** The values that a body was built of. */
export function typed(schema, body) {
  const values = {};
  for (const [name, field] of members(schema)) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    if (field.type === "kind") values[name] = { kind: value.kind, values: typed(field.kinds[value.kind], value) };
    else if (field.type === "number" || field.type === "numbers") values[name] = [value].flat().join(", ");
    else values[name] = field.type === "json" ? JSON.stringify(value) : value;
  }
  return values;
}
