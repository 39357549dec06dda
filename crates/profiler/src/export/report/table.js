// Tables that are sorted by a click on a heading, and show only so many rows at first.

const ROWS = 100;

const makeTable = (place, columns, rows, sortBy) => {
  let by = sortBy, falling = true, fits = null, most = ROWS;
  const value = (row, column) => (column.value ? column.value(row) : row[column.key]);
  const head = element("tr");
  const body = element("tbody");
  const more = element("p", { className: "more" });
  for (const column of columns) {
    const cell = element("th", { scope: "col", tabIndex: 0, title: column.help || "", className: column.text ? "text" : "" }, column.label);
    cell.dataset.key = column.key;
    const sort = () => {
      falling = by === column.key ? !falling : !column.text;
      by = column.key;
      fill();
    };
    cell.onclick = sort;
    cell.onkeydown = event => { if (event.key === "Enter") sort(); };
    head.append(cell);
  }
  const fill = () => {
    const column = columns.find(column => column.key === by);
    const sign = falling ? -1 : 1;
    const kept = fits ? rows.filter(row => fits(row.name)) : rows.slice();
    kept.sort((a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      return column.text ? sign * (x < y ? -1 : x > y ? 1 : 0) : sign * ((x ?? -Infinity) - (y ?? -Infinity));
    });
    for (const cell of head.children) {
      if (cell.dataset.key === by) cell.ariaSort = falling ? "descending" : "ascending";
      else cell.removeAttribute("aria-sort");
    }
    body.replaceChildren(...kept.slice(0, most).map(row => element("tr", {}, ...columns.map(column => cellOf(row, column)))));
    more.replaceChildren(kept.length > most
      ? element("button", { onclick: () => { most = Infinity; fill(); } }, `Show all ${count(kept.length)} rows`)
      : element("span", { className: "quiet" }, `${count(kept.length)} of ${count(rows.length)} rows`));
  };
  const cellOf = (row, column) => {
    const number = value(row, column);
    const text = number === null || number === undefined ? "–" : column.show ? column.show(number) : String(number);
    const cell = element("td", { className: column.text ? "text" : "" }, column.text ? shown(text) : text);
    if (column.key === "name") {
      cell.classList.add("name");
      cell.title = shown(text, 1000);
    }
    if (column.share && number > 0) {
      cell.className = "share";
      const part = Math.min(1, column.share(row));
      cell.style.backgroundImage = "linear-gradient(var(--bar), var(--bar))";
      cell.style.backgroundSize = `${100 * part}% 70%`;
    }
    return cell;
  };
  fill();
  place.append(element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), body)), more);
  return { filter(wanted) { fits = wanted; fill(); } };
};
