// The flame chart. A row's slices do not overlap, so both their starts and their ends are in
// order: what is visible is found by bisection, and slices that share a pixel are drawn once.
// A frame costs rows times pixels, however many slices there are.

const ROW = 18;
const LABEL = 20;
const AXIS = 22;
const FIELDS = 7;

// Columns of numbers and, per depth, the slices at it.
const readTrack = (track, nameOf) => {
  const { slices } = track;
  const n = slices.length / FIELDS;
  const start = new Float64Array(n), end = new Float64Array(n), own = new Float64Array(n);
  const name = new Int32Array(n), depth = new Int32Array(n), kind = new Uint8Array(n);
  const text = new Int32Array(n), work = new Float64Array(n);
  const open = [], sizes = [];
  let at = 0;
  for (let i = 0, j = 0; i < n; i += 1, j += FIELDS) {
    at += slices[j];
    start[i] = at;
    own[i] = slices[j + 1];
    end[i] = at + slices[j + 1];
    name[i] = slices[j + 2];
    depth[i] = slices[j + 3];
    kind[i] = slices[j + 4];
    text[i] = slices[j + 5];
    work[i] = slices[j + 6];
    if (depth[i] > 0) own[open[depth[i] - 1]] -= slices[j + 1];
    open[depth[i]] = i;
    sizes[depth[i]] = (sizes[depth[i]] || 0) + 1;
  }
  const rows = sizes.map(size => new Int32Array(size));
  const filled = sizes.map(() => 0);
  for (let i = 0; i < n; i += 1) rows[depth[i]][filled[depth[i]]++] = i;
  track.slices = null;
  return { label: track.label, n, start, end, own, name, kind, text, work, rows, nameOf };
};

// The first place from `low` on whose slice ends after `time`.
const endsAfter = (row, end, time, low) => {
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[row[middle]] > time) high = middle; else low = middle + 1;
  }
  return low;
};

const makeFlame = (data, view) => {
  const nameOf = number => (number < 0 ? data.texts[-1 - number] : data.names[number]);
  const tracks = data.tracks.map(track => readTrack(track, nameOf));
  let top = AXIS;
  for (const track of tracks) {
    track.top = top;
    top += LABEL + ROW * track.rows.length + 6;
  }
  const total = top;
  const box = find("#flame");
  const height = Math.min(total, 520);
  box.style.height = `${height + 2}px`;
  find("#flame .spacer").style.height = `${Math.max(0, total - height)}px`;
  let width = 0, chosen = null, wanted = null, range = null;

  const x = at => (at - view.from) / (view.to - view.from) * width;
  const at = pixel => view.from + pixel / width * (view.to - view.from);

  const drawRow = (context, track, row, y) => {
    const { start, end, kind, name } = track;
    const scale = width / (view.to - view.from);
    let i = endsAfter(row, end, view.from, 0);
    while (i < row.length) {
      const slice = row[i];
      const left = (start[slice] - view.from) * scale;
      if (left > width) break;
      const right = (end[slice] - view.from) * scale;
      const dim = wanted && !wanted.has(name[slice]);
      context.fillStyle = classes[kind[slice]].color;
      context.globalAlpha = dim ? 0.18 : 1;
      if (right - left < 1.5) {
        const pixel = Math.max(0, Math.floor(left));
        if (!dim) context.globalAlpha = 0.75;
        context.fillRect(pixel, y, 1, ROW - 2);
        i = endsAfter(row, end, at(pixel + 1), i + 1);
        continue;
      }
      const from = Math.max(left, 0), to = Math.min(right, width);
      context.fillRect(from, y, Math.max(1, to - from - 0.5), ROW - 2);
      if (to - from > 28) drawName(context, track, slice, from, to, y);
      i += 1;
    }
    context.globalAlpha = 1;
  };

  const drawName = (context, track, slice, from, to, y) => {
    context.fillStyle = track.kind[slice] === 5 ? "#1b222b" : "#ffffff";
    const room = to - from - 8;
    // Six pixels per letter is a guess; the clip makes it right.
    const text = shown(track.nameOf(track.name[slice]), 200).slice(0, Math.ceil(room / 4));
    context.save();
    context.beginPath();
    context.rect(from, y, to - from - 3, ROW);
    context.clip();
    context.fillText(text, from + 4, y + 12);
    context.restore();
  };

  const canvas = makeCanvas(find("#flame canvas"), (context, w, h) => {
    width = w;
    const scrolled = box.scrollTop;
    context.font = `11px ${font}`;
    const { list, step } = ticks(view.from, view.to, width / 110);
    context.fillStyle = paint.grid;
    list.forEach(tick => context.fillRect(Math.round(x(tick)), 0, 1, h));
    for (const track of tracks) {
      const y = track.top - scrolled;
      if (y > h || y + LABEL + ROW * track.rows.length < 0) continue;
      context.fillStyle = paint.ink;
      context.font = `600 11px ${font}`;
      context.fillText(`${shown(track.label, 120)}   ${count(track.n)} ${track.n === 1 ? "event" : "events"}`, 6, y + 14);
      context.font = `11px ${font}`;
      const first = Math.max(0, Math.floor((AXIS - y - LABEL) / ROW));
      const last = Math.min(track.rows.length, Math.ceil((h - y - LABEL) / ROW));
      for (let row = first; row < last; row += 1) drawRow(context, track, track.rows[row], y + LABEL + row * ROW);
      if (chosen && chosen.track === track) {
        const [left, right] = [x(track.start[chosen.slice]), x(track.end[chosen.slice])];
        context.strokeStyle = paint.ink;
        context.lineWidth = 1.5;
        context.strokeRect(left, y + LABEL + chosen.row * ROW - 0.5, Math.max(2, right - left), ROW - 1);
      }
    }
    context.fillStyle = paint.wash;
    context.fillRect(0, 0, width, AXIS - 3);
    context.fillStyle = paint.quiet;
    list.forEach(tick => context.fillText(moment(tick, step), Math.round(x(tick)) + 4, 13));
    if (range) {
      context.fillStyle = paint.range;
      context.fillRect(Math.min(...range), 0, Math.abs(range[1] - range[0]), h);
    }
  });

  const under = event => {
    const frame = box.getBoundingClientRect();
    const y = event.clientY - frame.top + box.scrollTop;
    const time = at(event.clientX - frame.left - 1);
    const slack = (view.to - view.from) / width;
    for (const track of tracks) {
      const row = Math.floor((y - track.top - LABEL) / ROW);
      if (row < 0 || row >= track.rows.length) continue;
      const i = endsAfter(track.rows[row], track.end, time - slack, 0);
      const slice = track.rows[row][i];
      if (slice !== undefined && track.start[slice] <= time + slack) return { track, row, slice };
    }
    return null;
  };
  const describe = ({ track, slice }, most) => {
    const lines = [element("b", {}, shown(track.nameOf(track.name[slice]), most))];
    const span = track.end[slice] - track.start[slice];
    const self = track.own[slice] < span ? `, ${time(Math.max(0, track.own[slice]))} itself` : "";
    lines.push(`${time(span)}${self} · from ${moment(track.start[slice], 1)} · ${classes[track.kind[slice]].label}`);
    if (track.text[slice] >= 0) lines.push(shown(data.texts[track.text[slice]], most));
    if (track.work[slice] > 0) lines.push(`${flop(track.work[slice])}, ${flopsPerSecond(track.work[slice] / span * 1e9)}`);
    return lines;
  };
  const choose = hit => {
    chosen = hit;
    const lines = hit ? describe(hit, 4000) : [];
    find("#selected").replaceChildren(...lines.flatMap((line, i) => (i ? [" · ", line] : [line])));
    canvas.redraw();
  };

  let drag = null;
  box.addEventListener("pointerdown", event => {
    if (event.button !== 0 || event.offsetX > box.clientWidth) return;
    const pixel = event.clientX - box.getBoundingClientRect().left - 1;
    drag = { x: event.clientX, y: event.clientY, pixel, moved: false, from: view.from, to: view.to,
      scroll: box.scrollTop, zooms: event.shiftKey };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", event => {
    if (!drag) {
      const hit = under(event);
      if (hit) tooltip.show(event, ...describe(hit, 300)); else tooltip.hide();
      return;
    }
    drag.moved ||= Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 3;
    if (!drag.moved) return;
    tooltip.hide();
    box.classList.add("dragging");
    if (drag.zooms) {
      range = [drag.pixel, drag.pixel + event.clientX - drag.x];
      canvas.redraw();
    } else {
      const by = (drag.x - event.clientX) / width * (drag.to - drag.from);
      view.set(drag.from + by, drag.to + by);
      box.scrollTop = drag.scroll + drag.y - event.clientY;
    }
  });
  const release = event => {
    if (drag && !drag.moved) choose(under(event));
    if (range) view.set(at(Math.min(...range)), at(Math.max(...range)));
    [drag, range] = [null, null];
    box.classList.remove("dragging");
    canvas.redraw();
  };
  box.addEventListener("pointerup", release);
  box.addEventListener("pointercancel", release);
  box.addEventListener("pointerleave", tooltip.hide);
  box.addEventListener("dblclick", event => {
    const hit = under(event);
    if (!hit) return;
    const [from, to] = [hit.track.start[hit.slice], hit.track.end[hit.slice]];
    view.set(from - (to - from) * 0.05, to + (to - from) * 0.05);
  });
  box.addEventListener("wheel", event => {
    tooltip.hide();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const pixel = event.clientX - box.getBoundingClientRect().left - 1;
      view.zoom(at(pixel), Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      view.move((event.deltaX || event.deltaY) / width * (view.to - view.from));
    }
  }, { passive: false });
  box.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = (view.from + view.to) / 2, by = (view.to - view.from) / 6;
    const act = {
      w: () => view.zoom(middle, 0.7), s: () => view.zoom(middle, 1 / 0.7), 0: view.fit,
      a: () => view.move(-by), d: () => view.move(by), ArrowLeft: () => view.move(-by), ArrowRight: () => view.move(by),
      Escape: () => choose(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  box.addEventListener("scroll", () => canvas.redraw());
  view.onChange(() => {
    const part = view.to - view.from < view.span ? ` of ${time(view.span)}` : "";
    find("#range").textContent = `${time(view.to - view.from)}${part}`;
    canvas.redraw();
  });
  find("#zoom-in").onclick = () => view.zoom((view.from + view.to) / 2, 0.5);
  find("#zoom-out").onclick = () => view.zoom((view.from + view.to) / 2, 2);
  find("#zoom-fit").onclick = view.fit;
  const present = new Set(tracks.flatMap(track => [...new Set(track.kind)]));
  find("#legend").append(...legend(classes.filter((_, i) => present.has(i))));

  return {
    slices: tracks.reduce((sum, track) => sum + track.n, 0),
    resize: () => canvas.resize(box.clientWidth, height),
    // Lets slices stand out whose name fits; all, if `fits` is not given.
    filter(fits) {
      wanted = fits && new Set([
        ...data.names.flatMap((name, i) => (fits(name) ? [i] : [])),
        ...data.texts.flatMap((name, i) => (fits(name) ? [-1 - i] : [])),
      ]);
      canvas.redraw();
    },
  };
};
