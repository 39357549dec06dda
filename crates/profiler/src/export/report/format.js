// Numbers and names as people read them, and elements made in one call.

const units = (list, step) => value => {
  let i = 0;
  let size = Math.abs(value);
  while (size >= step && i + 1 < list.length) { size /= step; i += 1; }
  const digits = i === 0 && Number.isInteger(value) ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)} ${list[i]}`.trimEnd();
};
const time = units(["ns", "µs", "ms", "s"], 1000);
const bytes = units(["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const flops = units(["", "K", "M", "G", "T", "P"], 1000);
const flop = units(["FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], 1000);
const flopsPerSecond = units(["FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"], 1000);
const bytesPerSecond = units(["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000);
const count = value => value.toLocaleString("en-US");
const percent = part => `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)} %`;

// A control character has no picture of its own; a name may also be far too long to show.
const shown = (name, most = 300) => {
  const text = name.length > most ? `${name.slice(0, most)}… (${count(name.length)} characters)` : name;
  return text.replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)));
};

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const find = selector => document.querySelector(selector);

const classes = [
  { label: "forward", color: "#4c86c6" },
  { label: "backward", color: "#d9823b" },
  { label: "optimizer", color: "#5a9e57" },
  { label: "scope", color: "#9aa4b0" },
  { label: "module", color: "#8d7fc0" },
  { label: "step", color: "#b9c2cd" },
  { label: "launch", color: "#5fa8a3" },
  { label: "kernel", color: "#3f8f93" },
  { label: "copy", color: "#b98ba8" },
];
const legend = keys => keys.map(({ label, color }) =>
  element("span", { className: "key" }, element("i", { style: `background:${color}` }), label));
