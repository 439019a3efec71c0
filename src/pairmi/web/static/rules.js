// An editor for a rule, made from the catalogue: a new rule appears by itself.

import { h, refill } from "./dom.js";
import { list, mark } from "./help.js";
import { PARAMETERS, RULES } from "./words.js";

const LATE = ["defer", "late"]; // which members wait, for a model whose tables know what they lose

export function parse(spec) {
  const [name, tail = ""] = spec.split(":");
  return { name, options: Object.fromEntries(tail.split(",").filter(Boolean).map((part) => part.split("="))) };
}
/** A rule with what is set in it, to read. */
export const shown = (spec) => Object.entries(parse(spec).options).map(([key, value]) => `${key.replace("_", " ")} ${value}`).join(", ");
export const inWords = (rule) => RULES[rule.name] ?? rule.about;

function field(parameter, value, model, change) {
  const choices = parameter.kind === "mi" ? model.estimates : parameter.choices;
  const label = (control) => h("label", { title: PARAMETERS[parameter.name] ?? "" }, `${parameter.name} `, control);
  if (choices.length) {
    const usual = parameter.kind === "mi" ? model.estimates[0] : parameter.default;
    const options = choices.map((choice) => h("option", { value: choice, selected: choice === (value ?? usual) }, choice));
    return label(h("select", { onchange: (event) => change(event.target.value === usual ? undefined : event.target.value) }, ...options));
  }
  const input = h("input", { type: "number", step: parameter.kind === "int" ? 1 : "any", value: value ?? parameter.default });
  input.addEventListener("change", () => change(input.value === "" || Number(input.value) === parameter.default ? undefined : input.value));
  return label(input);
}

function explanation(rule) {
  const parameters = rule.parameters.map(({ name }) => [name, PARAMETERS[name] ?? "see the definition"]);
  return h("div", {}, h("p", {}, inWords(rule)), list([...parameters, ["Definition", rule.about], ["Source", rule.reference]]));
}

/** Fills `place` with controls for `spec`; calls `changed` with the new specification, or null for the recommended one. */
export function ruleEditor(place, rules, model, spec, changed, advice = null) {
  const { name, options } = parse(spec);
  const rule = rules.find((one) => one.name === name) ?? rules[0];
  const waits = (all, key) => !LATE.includes(key) || (all.draw === "coupled" && model.defers && (key === "defer" || all.defer !== undefined));
  const tell = (key, value) => {
    const told = { ...options, [key]: value };
    const all = Object.entries(told).filter(([k, v]) => v !== undefined && waits(told, k));
    changed(rule.name + (all.length ? ":" + all.map((pair) => pair.join("=")).join(",") : ""));
  };
  const names = rules.map((one) => h("option", { value: one.name, selected: one === rule }, one.name));
  refill(
    place,
    h("div", { className: "row rule" },
      h("select", { onchange: (event) => changed(event.target.value), "aria-label": "Rule" }, ...names),
      mark(`the rule ${rule.name}`, () => explanation(rule)),
      ...rule.parameters.filter((parameter) => waits(options, parameter.name)).map((parameter) => field(parameter, options[parameter.name], model, (value) => tell(parameter.name, value)))),
    h("p", { className: "about" }, inWords(rule), " ", advice && (advice.taken ? h("b", {}, `Recommended for ${advice.purpose}.`) : h("button", { type: "button", className: "link", onclick: () => changed(null) }, `Use the one recommended for ${advice.purpose}`))),
  );
}
