// Memory over time, one chart per device, its parts on top of each other.

const SERIES = {
  allocated: "#7fa7d1", parameter: "#4c86c6", optimizer_state: "#5a9e57", input: "#6b7683",
  temporary: "#c9b26b", activation: "#d9823b", gradient: "#b0608e", autograd_detail: "#8d7fc0", unknown: "#b8c0c9",
};

// Totals after each change, and each part's share of them.
const readMemory = device => {
  const n = device.changes.length / 3, parts = device.series.length;
  const at = new Float64Array(n + 1), total = new Float64Array(n + 1);
  const values = device.series.map(() => new Float64Array(n + 1));
  const now = device.before.slice();
  let moment = 0;
  for (let i = 0; i <= n; i += 1) {
    if (i > 0) {
      moment += device.changes[3 * i - 3];
      now[device.changes[3 * i - 2]] += device.changes[3 * i - 1];
    }
    at[i] = moment;
    for (let part = 0; part < parts; part += 1) {
      values[part][i] = now[part];
      total[i] += now[part];
    }
  }
  device.changes = null;
  return { ...device, n: n + 1, at, total, values, most: total.reduce((a, b) => Math.max(a, b), 0) };
};

const makeMemoryChart = (device, view) => {
  const { at, total, values, n } = device;
  const colors = device.series.map(label => SERIES[label] || "#b8c0c9");
  const HEIGHT = 150;
  const canvasElement = element("canvas");
  let width = 0;
  // The last change at or before a moment.
  const before = time => {
    let low = 0, high = n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at[middle] > time) high = middle; else low = middle + 1;
    }
    return Math.max(0, low - 1);
  };
  // Per pixel, the moment with most memory: a peak is seen however short it was.
  const highest = (from, to) => {
    let best = from;
    for (let i = from + 1; i <= to; i += 1) if (total[i] > total[best]) best = i;
    return best;
  };
  const canvas = makeCanvas(canvasElement, (context, w, h) => {
    width = w;
    const { list } = ticks(view.from, view.to, width / 110);
    context.fillStyle = paint.grid;
    list.forEach(tick => context.fillRect(Math.round((tick - view.from) / (view.to - view.from) * width), 0, 1, h));
    const y = bytes => h - 1 - bytes / Math.max(device.most, 1) * (h - 18);
    let from = before(view.from);
    for (let pixel = 0; pixel < width; pixel += 1) {
      const to = before(view.from + (pixel + 1) / width * (view.to - view.from));
      const best = highest(from, to);
      let base = 0;
      for (let part = 0; part < values.length; part += 1) {
        const next = base + values[part][best];
        context.fillStyle = colors[part];
        context.fillRect(pixel, y(next), 1, y(base) - y(next));
        base = next;
      }
      from = to;
    }
    context.font = `11px ${font}`;
    context.fillStyle = paint.quiet;
    context.fillText(`peak ${bytes(device.most)}`, 6, 12);
    context.fillStyle = paint.line;
    context.fillRect(0, y(device.most) - 0.5, width, 1);
  });
  canvasElement.addEventListener("pointermove", event => {
    const frame = canvasElement.getBoundingClientRect();
    const time = view.from + (event.clientX - frame.left) / width * (view.to - view.from);
    const i = before(time);
    const parts = device.series.length > 1 ? device.series.map((label, part) => [label, values[part][i]]) : [];
    tooltip.show(event, element("b", {}, bytes(total[i])), `${device.device} at ${moment(time, 1)}`,
      ...parts.filter(([, bytes]) => bytes > 0).map(([label, value]) => `${label.replace("_", " ")}: ${bytes(value)}`));
  });
  canvasElement.addEventListener("pointerleave", tooltip.hide);
  view.onChange(canvas.redraw);
  const keys = device.series.map((label, i) => ({ label: label.replace("_", " "), color: colors[i], most: values[i].reduce((a, b) => Math.max(a, b), 0) }))
    .filter(key => key.most > 0);
  const body = element("div", { className: "chart" }, element("h3", {}, device.device), canvasElement);
  if (keys.length > 1) body.append(element("div", { className: "legend" }, ...legend(keys)));
  return { body, resize: () => canvas.resize(body.clientWidth - 2, HEIGHT) };
};

const makeMemory = (data, view) => {
  const place = find("#memory .charts");
  const devices = data.memory.map(readMemory);
  if (devices.length === 0) {
    const why = data.about.flags.includes("profile_memory") ? "No memory was taken or given back." : "Memory was not recorded: profile_memory was off.";
    place.append(element("p", { className: "note" }, why));
  }
  if (devices.length > 0 && devices.every(device => device.series.length === 1)) {
    place.append(element("p", { className: "note" }, "What memory was for is known if record_shapes, profile_memory and with_stack are on together."));
  }
  const charts = devices.map(device => makeMemoryChart(device, view));
  place.append(...charts.map(chart => chart.body));
  return { devices, resize: () => charts.forEach(chart => chart.resize()) };
};
