// The part of the time axis that is looked at, shared by all charts.

const makeView = span => {
  const listeners = [];
  const view = {
    span: Math.max(span, 1), from: 0, to: Math.max(span, 1),
    onChange: listener => listeners.push(listener),
    set(from, to) {
      const width = Math.min(Math.max(to - from, 10), view.span);
      view.from = Math.min(Math.max(from, 0), view.span - width);
      view.to = view.from + width;
      listeners.forEach(listener => listener());
    },
    zoom(around, factor) {
      view.set(around - (around - view.from) * factor, around + (view.to - around) * factor);
    },
    move: by => view.set(view.from + by, view.to + by),
    fit: () => view.set(0, view.span),
  };
  return view;
};

// Round times, about `most` of them, between two moments.
const ticks = (from, to, most) => {
  const rough = (to - from) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(step => step >= rough);
  const list = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) list.push(at);
  return { list, step };
};

// A time with as many digits as neighbours need to differ.
const moment = (at, step) => {
  const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([size]) => at >= size || size === 1);
  const digits = Math.max(0, Math.ceil(Math.log10(unit[0] / step) - 1e-9));
  return `${(at / unit[0]).toFixed(Math.min(digits, 9))} ${unit[1]}`;
};

// A canvas as sharp as the screen, redrawn once per frame however often it is asked for.
const makeCanvas = (canvas, draw) => {
  const context = canvas.getContext("2d");
  let asked = false;
  const redraw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      const scale = window.devicePixelRatio || 1;
      const { width, height } = canvas.dataset;
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      draw(context, +width, +height);
    });
  };
  return {
    redraw,
    resize(width, height) {
      canvas.dataset.width = Math.max(1, Math.floor(width));
      canvas.dataset.height = Math.max(1, Math.floor(height));
      redraw();
    },
  };
};

const font = getComputedStyle(document.body).fontFamily;

// The page's colors, for canvases; they follow when the system turns dark or light.
const paint = {};
const readPaint = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "quiet", "line", "grid", "wash", "range"]) paint[name] = style.getPropertyValue(`--${name}`).trim();
};
readPaint();
const onScheme = redraw => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readPaint(); redraw(); });
