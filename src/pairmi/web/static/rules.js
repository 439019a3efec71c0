// An editor for a rule, made from the catalogue: a new rule appears by itself.

import { h, refill } from "./dom.js";

export function parse(spec) {
  const [name, tail = ""] = spec.split(":");
  return { name, options: Object.fromEntries(tail.split(",").filter(Boolean).map((part) => part.split("="))) };
}

function field(parameter, value, model, change) {
  const choices = parameter.kind === "mi" ? model.estimates : parameter.choices;
  if (choices.length) {
    const usual = parameter.kind === "mi" ? model.estimates[0] : parameter.default;
    const options = choices.map((choice) => h("option", { value: choice, selected: choice === (value ?? usual) }, choice));
    return h("label", {}, `${parameter.name} `, h("select", { onchange: (event) => change(event.target.value === usual ? undefined : event.target.value) }, ...options));
  }
  const input = h("input", { type: "number", step: parameter.kind === "int" ? 1 : "any", value: value ?? parameter.default });
  input.addEventListener("change", () => change(input.value === "" || Number(input.value) === parameter.default ? undefined : input.value));
  return h("label", {}, `${parameter.name} `, input);
}

/** Fills `place` with controls for `spec`; calls `changed` with the new specification. */
export function ruleEditor(place, rules, model, spec, changed) {
  const { name, options } = parse(spec);
  const rule = rules.find((one) => one.name === name) ?? rules[0];
  const tell = (key, value) => {
    const all = Object.entries({ ...options, [key]: value }).filter(([, v]) => v !== undefined);
    changed(rule.name + (all.length ? ":" + all.map((pair) => pair.join("=")).join(",") : ""));
  };
  const names = rules.map((one) => h("option", { value: one.name, selected: one === rule }, one.name));
  refill(
    place,
    h("div", { className: "row rule" },
      h("select", { onchange: (event) => changed(event.target.value), "aria-label": "Rule" }, ...names),
      ...rule.parameters.map((parameter) => field(parameter, options[parameter.name], model, (value) => tell(parameter.name, value)))),
    h("p", { className: "about", title: rule.reference }, rule.about),
  );
}
