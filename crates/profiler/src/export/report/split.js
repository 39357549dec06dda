// Forward, backward and optimizer as parts of one bar.

const splitRow = ({ label, wall, phases }) => {
  const rest = Math.max(0, wall - phases.reduce((sum, part) => sum + part, 0));
  const stack = element("div", { className: "stack" });
  phases.forEach((part, i) => {
    if (part === 0) return;
    const text = `${classes[i].label} ${time(part)}`;
    const title = `${text}, ${percent(part / wall)}`;
    const bar = element("span", { title }, part / wall > 0.2 ? `${text} (${percent(part / wall)})` : part / wall > 0.11 ? text : "");
    bar.style.cssText = `background:${classes[i].color};width:${100 * part / wall}%`;
    stack.append(bar);
  });
  stack.append(element("span", { title: `outside operators ${time(rest)}`, style: "flex:1" }));
  const name = element("div", { className: "name", title: shown(label, 1000) }, shown(label));
  return [name, stack, element("div", { className: "total" }, time(wall))];
};

const makeSplits = data => {
  const place = find("#phases .body");
  if (data.splits.length === 0) {
    place.append(element("p", { className: "note" }, "No operator ran."));
    return;
  }
  place.append(
    element("p", { className: "note" }, "Time in operators, each counted without what it called; the engine's and the optimizer's own code counts as theirs. What is left of a bar was spent outside of operators."),
    element("div", { className: "split" }, ...data.splits.flatMap(splitRow)));
  if (data.steps.length > 0) {
    place.append(element("div", { className: "steps" }, element("div", { className: "split" }, ...data.steps.flatMap(splitRow))));
  }
};
