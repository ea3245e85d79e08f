// /api: the description in openapi.json, for people.

import { $, element } from "./dom.js";

const given = await (await fetch("api/openapi.json")).json();
const resolved = (schema) => (schema.$ref ? schema.$ref.slice(2).split("/").reduce((at, name) => at[name], given) : schema);
const rowOf = (...cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));

function tableOf(head, rows) {
  const names = element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, names), element("tbody", {}, ...rows)));
}

function kindOf(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return element("a", { href: `#${name}` }, name);
  }
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array") return element("span", {}, "list of ", kindOf(schema.items));
  if (schema.type === "object") return element("span", {}, ...Object.entries(schema.properties).flatMap(([name, of]) => [`${name}: `, kindOf(of), " "]));
  const written = (number) => number.toLocaleString("en");
  const limits = [
    schema.maxLength && `at most ${written(schema.maxLength)} characters`,
    schema.maximum > 1 && `${written(schema.minimum)} to ${written(schema.maximum)}`,
    schema.default !== undefined && `default ${schema.default}`,
  ];
  return [[schema.type].flat().join(" or "), ...limits.filter(Boolean)].join(", ");
}

function operation([path, { get }]) {
  const parameters = get.parameters.map((each) => rowOf(
    element("code", {}, each.name), each.required ? "yes" : "no", kindOf(each.schema),
    [each.description, each.schema.enum && each.schema.default && `By default ${each.schema.default}.`].filter(Boolean).join(" ")));
  const answers = Object.entries(get.responses).map(([status, answer]) => {
    const { description, content } = resolved(answer);
    const [[media, { schema }]] = Object.entries(content);
    return rowOf(status, media === "application/json" ? kindOf(schema) : media, description);
  });
  return element("article", {},
    element("h3", {}, element("code", {}, `GET ${path}`)), element("p", {}, `${get.summary}. ${get.description || ""}`),
    parameters.length ? tableOf(["parameter", "required", "values", "meaning"], parameters) : null,
    tableOf(["status", "answer", "meaning"], answers));
}

function noteOf(field, of, required) {
  if (of.$ref?.endsWith("/Html")) return "";
  if (of.$ref?.endsWith("/Text")) return "with format=text";
  return required.includes(field) ? "" : "not always";
}

function schemaOf([name, schema]) {
  const fields = Object.entries(schema.properties || {}).map(([field, of]) => rowOf(
    element("code", {}, field), kindOf(of), [noteOf(field, of, schema.required), of.description].filter(Boolean).join("; ")));
  return element("article", { id: name },
    element("h3", {}, name), schema.description ? element("p", {}, schema.description) : null,
    fields.length ? tableOf(["field", "value", "meaning"], fields) : null);
}

$("api").append(
  element("p", {}, given.info.description),
  element("h2", {}, "Requests"), ...Object.entries(given.paths).map(operation),
  element("h2", {}, "Answers"), ...Object.entries(given.components.schemas).map(schemaOf));
