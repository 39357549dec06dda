// Reads the data and puts the parts together.

const data = JSON.parse(find("#data").textContent);
const { about } = data;
const has = flag => about.flags.includes(flag);
const sum = (list, key) => list.reduce((sum, one) => sum + one[key], 0);

document.title = `Profile of ${shown(about.process, 80)}`;
find("#title").textContent = document.title;
find("#about").textContent = [
  new Date(about.start_ms).toISOString().replace("T", " ").slice(0, 19) + " UTC",
  `${shown(about.host, 80)}, process ${about.pid}`,
  ...about.devices.map(device => shown(device, 120)),
  about.flags.length ? `with ${about.flags.join(", ")}` : "",
  ...about.metadata.map(([key, value]) => `${shown(key, 80)}: ${shown(value, 120)}`),
].filter(Boolean).join(" · ");

const view = makeView(about.span);
const flame = makeFlame(data, view);
const memory = makeMemory(data, view);
makeSplits(data);

const host = data.rows.filter(row => row.kind !== "device");
const kernels = data.rows.filter(row => row.kind === "device");
const hostTime = sum(host, "self_cpu"), deviceTime = sum(kernels, "self_device");
const facts = [["Recorded", time(about.span)], ["Events", count(flame.slices)], ["Host time in events", time(hostTime)]];
if (deviceTime > 0) facts.push([`${about.device} busy`, time(deviceTime)]);
if (has("with_flops")) facts.push(["Floating-point work", flop(sum(host, "flops"))]);
memory.devices.forEach(device => facts.push([`Peak memory, ${device.device}`, bytes(device.most)]));
find("#summary").append(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));

const figure = (key, label, show, total, help) => ({ key, label, show, help, share: total > 0 ? row => row[key] / total : null });
const columns = [
  { key: "name", label: "Name", text: true },
  { key: "count", label: "Calls", show: count },
  figure("self_cpu", "Self CPU", time, hostTime, "Host time without what it called"),
  { key: "part", label: "Self CPU %", value: row => row.self_cpu / Math.max(hostTime, 1), show: percent },
  figure("cpu", "CPU total", time, 0, "Host time with everything it called"),
  { key: "average", label: "CPU average", value: row => row.cpu / row.count, show: time },
];
if (deviceTime > 0) {
  columns.push(figure("self_device", `Self ${about.device}`, time, deviceTime), figure("on_device", `${about.device} total`, time, 0));
}
if (has("profile_memory")) {
  columns.push(figure("self_cpu_memory", "Self CPU memory", bytes, 0, "Taken and not given back"));
  if (host.some(row => row.device_memory !== 0)) columns.push(figure("self_device_memory", `Self ${about.device} memory`, bytes, 0));
}
if (has("with_flops")) columns.push({ key: "flops", label: "FLOP", show: value => (value > 0 ? flops(value) : "–") });
const operators = makeTable(find("#operators .body"), columns, host, "self_cpu");

const leaves = data.speeds;
const kernelRows = kernels.length > 0 ? kernels.map(row => ({ name: row.name, device: row.device, count: row.count, time: row.self_device }))
  : leaves.map(row => ({ name: row.name, device: row.device.toUpperCase(), count: row.count, time: row.time }));
const kernelTime = sum(kernelRows, "time");
if (kernels.length === 0) {
  find("#kernels .body").append(element("p", { className: "note" }, kernelRows.length > 0
    ? "No device was watched: these are the operators whose kernels ran on the host, with the time of the call itself."
    : "No device was watched, and without record_shapes it is not known which operators ran kernels on the host."));
}
const kernelTable = kernelRows.length === 0 ? null : makeTable(find("#kernels .body"), [
  { key: "name", label: "Kernel", text: true },
  { key: "device", label: "Device", text: true },
  { key: "count", label: "Runs", show: count },
  { key: "time", label: "Time", show: time, share: row => row.time / kernelTime },
  { key: "part", label: "Time %", value: row => row.time / kernelTime, show: percent },
  { key: "average", label: "Average", value: row => row.time / row.count, show: time },
], kernelRows, "time");

const speedTable = (() => {
  const place = find("#speed .body");
  const note = text => place.append(element("p", { className: "note" }, text));
  if (leaves.length === 0) {
    note("Neither FLOPs nor shapes were recorded: with_flops and record_shapes tell what was computed and moved.");
    return null;
  }
  const peakOf = row => data.peaks.find(peak => peak.device === row.device);
  for (const device of new Set(leaves.map(row => row.device))) {
    const peak = data.peaks.find(peak => peak.device === device);
    note(peak
      ? `${device} at its best: ${flopsPerSecond(peak.flops)} and ${bytesPerSecond(peak.bandwidth)}, measured with ${shown(peak.source)}.`
      : `The peak of ${device} is not known, so speeds stand by themselves. It was not given to the report.`);
  }
  note("Bytes are those of the tensors an operator was given and of the memory it took: at least so much was moved. More than 100 % of a bandwidth means that it came out of a cache.");
  const rate = (row, key) => row[key] / row.time * 1e9;
  const part = (row, key, best) => { const peak = peakOf(row); return peak && row[key] > 0 ? rate(row, key) / peak[best] : null; };
  return makeTable(place, [
    { key: "name", label: "Operator", text: true },
    { key: "device", label: "Device", text: true },
    { key: "count", label: "Calls", show: count },
    { key: "time", label: "Time", show: time, share: row => row.time / sum(leaves, "time") },
    { key: "flops", label: "FLOP", value: row => row.flops || null, show: flops },
    { key: "rate", label: "FLOP/s", value: row => (row.flops ? rate(row, "flops") : null), show: flops },
    { key: "of_flops", label: "of peak", value: row => part(row, "flops", "flops"), show: percent, share: row => part(row, "flops", "flops") },
    { key: "bytes", label: "Bytes", value: row => row.bytes || null, show: bytes },
    { key: "bandwidth", label: "Bandwidth", value: row => (row.bytes ? rate(row, "bytes") : null), show: bytesPerSecond },
    { key: "of_bandwidth", label: "of peak", value: row => part(row, "bytes", "bandwidth"), show: percent, share: row => part(row, "bytes", "bandwidth") },
    { key: "intensity", label: "FLOP/B", value: row => (row.flops && row.bytes ? row.flops / row.bytes : null), show: value => value.toFixed(2) },
  ], leaves, "time");
})();

const input = find("#filter");
input.addEventListener("input", () => {
  const part = input.value.toLowerCase();
  const fits = part === "" ? null : name => name.toLowerCase().includes(part);
  [operators, kernelTable, speedTable, flame].forEach(one => one && one.filter(fits));
});
const resize = () => { flame.resize(); memory.resize(); };
addEventListener("resize", resize);
onScheme(resize);
resize();
view.fit();
