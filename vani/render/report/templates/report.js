/* Draws the plots, sorts and filters tables, explains terms, copies lines. The page is readable without it. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.replace("no-js", "js");
  for (const only of document.querySelectorAll(".js-only")) only.hidden = false;
  const data = JSON.parse(document.getElementById("data").textContent);
  const said = document.getElementById("said");
  const say = (text) => { said.textContent = ""; said.textContent = text; };

  /* Light and dark. */
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("scheme");
  const isDark = () => (root.dataset.scheme ? root.dataset.scheme === "dark" : system.matches);
  const showScheme = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    root.dataset.scheme = isDark() ? "light" : "dark";
    showScheme();
    drawAll();
  });
  system.addEventListener("change", () => {
    if (root.dataset.scheme) return;
    showScheme();
    drawAll();
  });
  showScheme();

  /* Plots. Expressions are interpreted (`ast`), so the page needs no eval. */
  const figures = [...document.querySelectorAll("figure[data-plot]")];
  let forPaper = false;
  /* Vega reads comma-separated values with code that it makes; the page allows no made code, so they are read here. */
  function unpacked(part) {
    if (Array.isArray(part)) return part.map(unpacked);
    if (part === null || typeof part !== "object") return part;
    if (typeof part.values === "string" && part.format && part.format.type === "csv") {
      const [names, ...lines] = part.values.split("\n").map((line) => line.split(","));
      const isNumber = names.map((name) => (part.format.parse || {})[name] === "number");
      return { values: lines.map((line) => Object.fromEntries(names.map((name, i) => [name, isNumber[i] ? Number(line[i]) : line[i]]))) };
    }
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, unpacked(value)]));
  }
  async function draw(figure) {
    const theme = forPaper ? "paper" : isDark() ? "dark" : "light";
    const canvas = figure.querySelector(".canvas");
    const turn = (figure.turn = (figure.turn || 0) + 1);
    try {
      const spec = unpacked(data.specs[figure.dataset.plot]);
      const drawn = await vegaEmbed(canvas, spec, {
        mode: "vega-lite", renderer: "svg", ast: true, actions: false, config: data.themes[theme],
        logLevel: vega.Error,
        tooltip: { theme: theme === "dark" ? "dark" : "light", disableDefaultStyle: false },
      });
      if (turn !== figure.turn) return;
      if (figure.drawn) figure.drawn.finalize();
      figure.drawn = drawn;
      figure.dataset.drawn = theme;
      follows(figure);
    } catch (error) {
      canvas.textContent = "This plot could not be drawn here; the numbers are in the table below.";
      console.error(error);
    }
  }
  /* Plots over time show the same range: the one that was chosen last, in any of them or in the form. */
  const RANGE = "zoom_from";
  const form = document.getElementById("zoom");
  let range = null;
  const same = (a, b) => a === b || (a && b && a[0] === b[0] && a[1] === b[1]);
  const rangeOf = (view) => view.getState({ signals: (name) => name === RANGE, data: () => false }).signals[RANGE];
  function show(wanted) {
    range = wanted;
    for (const figure of figures) {
      const view = figure.drawn && figure.drawn.view;
      if (!view || !figure.hasRange || same(rangeOf(view) || null, range)) continue;
      view.signal(RANGE, range).runAsync();
    }
    if (!form) return;
    const [from, to] = form.querySelectorAll("input");
    [from.value, to.value] = range ? range.map((s) => Number(s.toPrecision(6))) : ["", ""];
  }
  function follows(figure) {
    const view = figure.drawn.view;
    try {
      view.addSignalListener(RANGE, (_, value) => {
        const found = value && value.length === 2 && value.every(Number.isFinite) ? [...value] : null;
        if (!same(found, range)) show(found);
      });
      figure.hasRange = true;
      if (range) view.signal(RANGE, range).runAsync();
    } catch {
      figure.hasRange = false;
    }
  }
  if (form) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [from, to] = [...form.querySelectorAll("input")].map((input) => input.valueAsNumber);
      if (!(to > (from || 0))) { say("The range of time must end after it begins"); return; }
      show([from || 0, to]);
      say(`Plots show seconds ${from || 0} to ${to}`);
    });
    form.addEventListener("reset", () => { show(null); say("Plots show the whole run"); });
  }

  /* A folded section has no width to draw in: it is drawn when it is opened. */
  const isShown = (figure) => !figure.closest("details:not([open])");
  const drawAll = () => Promise.all(figures.map((figure) => {
    if (isShown(figure)) return draw(figure);
    delete figure.dataset.drawn;
    return null;
  }));
  const start = drawAll();
  start.then(() => { performance.mark("drawn"); root.dataset.drawn = "all"; });
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      for (const figure of details.querySelectorAll("figure[data-plot]:not([data-drawn])")) if (isShown(figure)) draw(figure);
    });
  }

  /* A link into a folded section opens it. */
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const fold = target.querySelector(":scope > details.fold");
    if (fold) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  for (const link of document.querySelectorAll('a[href^="#"]:not(.term)')) link.addEventListener("click", () => setTimeout(follow));
  follow();

  /* What is open is printed, with light plots. */
  for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => { forPaper = event === "beforeprint"; drawAll(); });

  /* Sections with all words of the search field are open, the others are hidden. */
  const find = document.getElementById("find");
  const folds = [...document.querySelectorAll("details.fold")];
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = folds.filter((fold) => words.every((word) => fold.textContent.toLowerCase().includes(word)));
    for (const fold of folds) {
      fold.open = words.length > 0 && found.includes(fold);
      fold.hidden = !found.includes(fold);
    }
    say(`${found.length} of ${folds.length} sections`);
  });

  for (const figure of figures) {
    figure.querySelector(".save").addEventListener("click", async () => {
      if (!figure.drawn) return;
      const svg = await figure.drawn.view.toSVG();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
      link.download = `${figure.dataset.plot}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  /* Tables: what moves is a row, or a body where a row has members. */
  const unitsOf = (table) =>
    table.classList.contains("files") ? [...table.tBodies] : [...table.tBodies[0].rows];
  const firstRow = (unit) => (unit.rows ? unit.rows[0] : unit);
  function sort(table, column) {
    const head = table.tHead.rows[0].cells[column];
    const isNumber = head.classList.contains("num");
    const before = head.getAttribute("aria-sort");
    // Numbers are wanted largest first, words from a to z.
    const up = before ? before === "descending" : !isNumber;
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const units = unitsOf(table);
    const parent = units[0].parentNode;
    const keys = new Map(units.map((unit) => {
      const cell = firstRow(unit).cells[column];
      return [unit, isNumber ? (cell.dataset.value === undefined ? null : Number(cell.dataset.value)) : cell.textContent];
    }));
    units.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (x === null || y === null) return (x === null) - (y === null);
      const order = isNumber ? x - y : x.localeCompare(y, "en", { numeric: true });
      return up ? order : -order;
    });
    parent.append(...units);
    say(`Sorted by ${head.textContent.trim()}, ${up ? "ascending" : "descending"}`);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const head = cell.querySelector("button");
      if (head) head.addEventListener("click", () => sort(table, column));
    });
  }

  const opened = (body) => body.querySelector(".open").getAttribute("aria-expanded") === "true";
  function open(body, yes) {
    body.querySelector(".open").setAttribute("aria-expanded", String(yes));
    for (const row of body.querySelectorAll(".member")) row.hidden = !yes;
  }
  for (const body of document.querySelectorAll("tbody.group")) {
    open(body, false);
    body.querySelector(".open").addEventListener("click", () => open(body, !opened(body)));
  }

  for (const input of document.querySelectorAll("[data-filter]")) {
    const table = document.getElementById(input.dataset.filter);
    const count = document.querySelector(`[data-count="${input.dataset.filter}"]`);
    const total = table.tBodies.length;
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const body of table.tBodies) {
        const rows = [...body.rows];
        const hit = (row) => { const text = row.textContent.toLowerCase(); return words.every((word) => text.includes(word)); };
        const members = rows.slice(1).filter((row) => words.length && !hit(rows[0]) && hit(row));
        body.hidden = !(hit(rows[0]) || members.length);
        if (!body.hidden) shown += 1;
        if (members.length) {
          if (body.opened === undefined) body.opened = opened(body);
          open(body, true);
          for (const row of rows.slice(1)) row.hidden = !members.includes(row);
        } else if (body.opened !== undefined) {
          /* Sections that the filter opened are closed again. */
          open(body, body.opened);
          delete body.opened;
        }
      }
      count.textContent = words.length ? `${shown} of ${total} rows` : `${total} rows`;
    };
    input.addEventListener("input", filter);
    filter();
  }

  /* Lines to paste. */
  for (const copy of document.querySelectorAll("[data-copy]")) {
    copy.addEventListener("click", async () => {
      const code = document.getElementById(copy.dataset.copy);
      let done = true;
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        done = document.execCommand("copy");
      }
      copy.textContent = done ? "Copied" : "Selected";
      say(done ? "Copied" : "Selected: copy with the keyboard");
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
  }

  /* Terms: explained on hover, on focus and on touch; Escape hides the explanation. */
  const tip = document.getElementById("tip");
  let hiding;
  const hide = () => { tip.hidden = true; };
  const later = () => { hiding = setTimeout(hide, 200); };
  function explain(term) {
    clearTimeout(hiding);
    tip.textContent = document.getElementById(term.getAttribute("aria-describedby")).textContent;
    tip.hidden = false;
    const at = term.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, root.clientWidth - tip.offsetWidth - 8));
    const below = at.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(below ? at.bottom + 6 : at.top - tip.offsetHeight - 6) + scrollY}px`;
  }
  for (const term of document.querySelectorAll("a.term")) {
    let byTouch = false;
    term.addEventListener("pointerdown", (event) => { byTouch = event.pointerType === "touch"; });
    term.addEventListener("pointerenter", () => explain(term));
    term.addEventListener("pointerleave", later);
    term.addEventListener("focus", () => explain(term));
    term.addEventListener("blur", hide);
    term.addEventListener("click", (event) => {
      if (!byTouch) return;
      event.preventDefault();
      explain(term);
    });
  }
  tip.addEventListener("pointerenter", () => clearTimeout(hiding));
  tip.addEventListener("pointerleave", later);
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
