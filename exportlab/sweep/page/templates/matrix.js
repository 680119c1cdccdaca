// Filters and detail panel for the table of a sweep. Their state is kept in the address. The page contains the table itself.
"use strict";

(() => {
  const table = document.getElementById("matrix");
  if (!table) return;
  const form = document.getElementById("matrix-filters");
  const panel = document.getElementById("matrix-panel");
  const rule = document.head.appendChild(document.createElement("style"));
  const rows = [...table.querySelectorAll("tr[data-case]")];
  const columns = [...table.tHead.rows[1].cells].map((head) => {
    const [place, mode] = head.classList;
    const over = table.tHead.rows[0].querySelector("." + place);
    return { place, mode, exporter: over.dataset.exporter, spoken: over.textContent };
  });
  const boxes = [...form.querySelectorAll("[name=exporter]")];
  const places = [...new Set(columns.map((column) => column.place))];
  const FIELDS = ["search", "outcome", "family", "topic", "mode"];
  let open = null; // the cell that the panel shows

  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const once = (make) => { let made; return () => (made ??= make()); };
  let data = null; // texts of cases and runs, in the page or loaded when first needed
  const loaded = once(async () => (data = window.matrixTexts ?? (await unpacked(await fetched(table.dataset.texts)))));
  const fetched = (address) => new Promise((done, failed) => {
    const script = document.createElement("script"); // a page opened from a file can't load other formats
    script.src = address;
    script.onload = () => done(window.matrixPacked);
    script.onerror = () => failed(new Error(`The details could not be loaded: ${script.src}`));
    document.head.append(script);
  });
  async function unpacked(text) {
    if (!window.DecompressionStream) throw new Error("This browser is too old to show the details. They need Chrome 80, Firefox 113 or Safari 16.4.");
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  }
  const texts = once(() => {
    const errors = {};
    for (const [key, run] of Object.entries(data.runs)) {
      const name = key.slice(0, key.indexOf("/"));
      errors[name] = `${errors[name] ?? ""} ${run.error ?? ""} ${run.where ?? ""} ${(run.said ?? []).join(" ")} ${(run.failed ?? []).map((check) => check.detail).join(" ")}`;
    }
    return rows.map((row) => `${row.cells[0].textContent} ${row.dataset.topics} ${errors[row.dataset.case]}`.toLowerCase());
  });

  // A cell and its name, CASE/EXPORTER/MODE

  const nameOf = (cell) => {
    const { exporter, mode } = columns[cell.cellIndex - 1];
    return `${cell.parentNode.dataset.case}/${exporter}/${mode}`;
  };
  const cellOf = (name) => {
    const [test, exporter, mode] = name.split("/");
    const row = rows.find((one) => one.dataset.case === test);
    const index = columns.findIndex((column) => column.exporter === exporter && column.mode === mode);
    const cell = row && index >= 0 ? row.cells[index + 1] : null;
    return cell && cell.textContent ? cell : null;
  };

  // The address

  function chosen() {
    const values = new URLSearchParams();
    for (const name of FIELDS) if (form.elements[name].value) values.set(name, form.elements[name].value);
    const exporters = boxes.filter((box) => box.checked).map((box) => box.value);
    if (exporters.length) values.set("exporter", exporters.join(","));
    if (open) values.set("cell", nameOf(open));
    return values;
  }

  function keep() {
    const text = chosen().toString().replaceAll("%2F", "/").replaceAll("%2C", ",");
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  }

  function follow() {
    if (location.hash && !location.hash.includes("=")) return; // a heading
    const values = new URLSearchParams(location.hash.slice(1));
    for (const name of FIELDS) {
      form.elements[name].value = values.get(name) ?? "";
      if (form.elements[name].selectedIndex === -1) form.elements[name].value = ""; // not an option
    }
    const exporters = (values.get("exporter") ?? "").split(",");
    for (const box of boxes) box.checked = exporters.includes(box.value);
    filter();
    const cell = cellOf(values.get("cell") ?? "");
    if (cell) show(cell);
    else close();
    if (!cell?.offsetWidth && chosen().size) form.scrollIntoView();
  }

  // Filters

  function filter() {
    const wanted = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const count = form.querySelector("output");
    if (wanted.length && !data) return void loaded().then(filter, (error) => (count.textContent = error.message));
    const only = boxes.filter((box) => box.checked).map((box) => box.value);
    const mode = form.elements.mode.value;
    const kept = columns.filter((column) => (!only.length || only.includes(column.exporter)) && (!mode || column.mode === mode));
    const spans = Object.fromEntries(places.map((place) => [place, kept.filter((column) => column.place === place).length]));
    const gone = places.filter((place) => !spans[place]).map((place) => "." + place);
    if (mode) gone.push(mode === "static" ? ".dynamic" : ".static");
    table.style = `--exporters: ${places.filter((place) => spans[place]).length}${mode ? "; --width: var(--group)" : ""}`;
    const words = form.elements.outcome.selectedOptions[0].dataset.cells;
    rule.textContent = (gone.length ? `#matrix :is(${gone}) { display: none }\n` : "") + (words ? `#matrix td:not(${words}) { opacity: 0.2 }` : "");
    for (const head of table.querySelectorAll("[scope=colgroup]")) head.colSpan = spans[head.classList[0]] || 1;
    for (const head of table.querySelectorAll("[scope=rowgroup]")) head.colSpan = 1 + kept.length;
    const cells = words || gone.length ? `td:is(${words || "*"}):not(:empty${gone.map((place) => "," + place).join("")})` : "";
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !matches(row, cells, wanted.length ? texts()[i] : "", wanted);
      shown += !row.hidden;
    });
    for (const body of table.tBodies) body.hidden = [...body.rows].slice(1).every((row) => row.hidden);
    count.textContent = `${shown} of ${rows.length} cases`;
  }

  function matches(row, cells, text, wanted) {
    const { family, topic } = form.elements;
    if (family.value && row.parentNode.dataset.family !== family.value) return false;
    if (topic.value && !row.dataset.topics.split(",").includes(topic.value)) return false;
    return wanted.every((word) => text.includes(word)) && (!cells || row.querySelector(cells) !== null);
  }

  // The panel

  const two = (number) => Number(number.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 12 });
  const size = (bytes) => (bytes < 1e3 ? `${bytes} bytes` : bytes < 1e6 ? `${two(bytes / 1e3)} kB` : `${two(bytes / 1e6)} MB`);
  const FIGURES = [
    ["worst", "largest difference", (value) => value.toExponential(1)],
    ["nodes", "nodes", String],
    ["bytes", "file", size],
    ["weights_bytes", "weights", size],
    ["peak_bytes", "memory during the export", size],
    ["export", "time to export, torch.export = 1", two],
    ["call", "time of a call, eager = 1", two],
  ];

  function figures(run) {
    const found = FIGURES.filter(([key]) => run[key] !== undefined);
    return found.length ? `<dl>${found.map(([key, label, text]) => `<dt>${label}</dt><dd>${text(run[key])}</dd>`).join("")}</dl>` : "";
  }

  function said(run) {
    const where = run.where ? `<p>at <code>${escaped(run.where)}</code></p>` : "";
    const known = run.known ? `<p>${link(run.known)}</p>` : "";
    return run.error ? `<pre class="said">${escaped(run.error)}</pre>${where}${known}` : "";
  }

  const switched = (run) => (run.was_training ? "<p>The model was in training mode; exported as <code>eval()</code>.</p>" : "");

  function heard(run) {
    const lines = (run.said ?? []).map(([line, cause]) => `<li${cause ? ' class="cause"' : ""}>${escaped(line)}</li>`);
    return lines.length ? `<h4>Messages</h4><ul class="heard">${lines.join("")}</ul>` : "";
  }

  function failed(run) {
    const checks = (run.failed ?? []).map((check) => `<dt>${escaped(check.check)}, <code>${escaped(check.inputs)}</code></dt><dd>${word(check.outcome)} ${escaped(check.detail ?? "")}</dd>`);
    return checks.length ? `<h4>Checks that failed</h4><dl>${checks.join("")}</dl>` : "";
  }

  function source(about, where) {
    const [file, line] = (where ?? "").split(":");
    const marked = file === about.file ? Number(line) - about.line : -1;
    const lines = about.source.trimEnd().split("\n").map((text, i) => (i === marked ? `<mark>${text}</mark>` : text));
    const text = about.source ? `<div class="highlight"><pre>${lines.join("\n")}</pre></div>` : "";
    return `<h4>The case</h4>${text}<p><code>${escaped(about.file)}:${about.line}</code></p>`;
  }

  const CLOSE = '<button class="close" type="button" aria-label="close">✕</button>';
  const SILENT = ["wrong", "frozen"];
  const word = (outcome) => `<b class="key ${outcome}">${outcome}</b>`;
  const link = ([title, href]) => (href ? `<a href="${escaped(href)}">${escaped(title)}</a>` : escaped(title));

  function show(cell) {
    close();
    open = cell;
    cell.classList.add("open");
    cell.ariaExpanded = "true";
    panel.innerHTML = "";
    panel.hidden = false;
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    const still = (act) => (value) => { if (open === cell) act(value); };
    loaded().then(still(() => fill(nameOf(cell))), still((error) => (panel.innerHTML = `${CLOSE}<p>${escaped(error.message)}</p>`)));
  }

  function fill(name) {
    const [test, exporter, mode] = name.split("/");
    const spoken = columns.find((column) => column.exporter === exporter).spoken;
    const run = data.runs[name], about = data.cases[test];
    const pages = about.pages.length ? `<h4>Read on</h4><ul>${about.pages.map((page) => `<li>${link(page)}</li>`).join("")}</ul>` : "";
    panel.innerHTML = `${CLOSE}<h3>${escaped(test)}: ${escaped(spoken)}, ${mode}</h3>
      <p>${word(run.outcome)} ${SILENT.includes(run.outcome) ? (run.masked ? "only where a mask hides everything" : run.warned ? "but warned" : "silently") + ": " : ""}${about.doc}</p><div class="both"><div>${switched(run)}${said(run)}${heard(run)}${failed(run)}${figures(run)}${pages}</div><div>${source(about, run.where)}</div></div>`;
    panel.scrollTop = 0;
  }

  function close() {
    if (!open) return;
    open.classList.remove("open");
    open.ariaExpanded = "false";
    open = null;
    panel.hidden = true;
  }

  // Mouse and keys: one cell is a tab stop, arrows move it

  let stop = null;
  function stopAt(cell) {
    if (stop) stop.tabIndex = -1;
    stop = cell;
    stop.tabIndex = 0;
  }

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  function move(cell, [down, right]) {
    const shown = rows.filter((row) => !row.hidden);
    let row = shown.indexOf(cell.parentNode), column = cell.cellIndex, next;
    do {
      row += down;
      column += right;
      next = shown[row]?.cells[column];
    } while (next && next.tagName === "TD" && (!next.textContent || !next.offsetWidth));
    if (next && next.tagName === "TD") next.focus();
  }

  const cellAt = (event) => { const cell = event.target.closest?.("td"); return cell && cell.textContent ? cell : null; };
  table.addEventListener("click", (event) => { const cell = cellAt(event); if (cell) { show(cell); keep(); } });
  table.addEventListener("focusin", (event) => { const cell = cellAt(event); if (cell) stopAt(cell); });
  table.addEventListener("keydown", (event) => {
    const cell = cellAt(event);
    if (!cell || !(event.key in STEPS || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (event.key in STEPS) return move(cell, STEPS[event.key]);
    show(cell);
    keep();
    panel.focus();
  });
  function leave() {
    const cell = open;
    close();
    keep();
    cell?.focus({ preventScroll: true });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && open) leave(); });
  panel.addEventListener("click", (event) => { if (event.target.closest(".close")) leave(); });

  form.addEventListener("input", () => { filter(); keep(); });
  form.addEventListener("reset", () => setTimeout(() => { filter(); keep(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", follow);

  function begin() {
    table.setAttribute("role", "grid");
    for (const cell of table.querySelectorAll("tbody td:not(:empty)")) {
      cell.tabIndex = -1;
      cell.ariaLabel = cell.title = `${columns[cell.cellIndex - 1].spoken}, ${columns[cell.cellIndex - 1].mode}: ${[...cell.classList].slice(2).join(", but ")}`;
    }
    for (const cell of document.querySelectorAll("#matrix-totals td[data-outcome]:not(:empty)")) {
      const { exporter, mode } = cell.parentNode.dataset;
      cell.innerHTML = `<a href="#outcome=${cell.dataset.outcome}&mode=${mode}&exporter=${exporter}">${cell.textContent}</a>`;
    }
    const first = table.querySelector("tbody td:not(:empty)");
    if (first) stopAt(first);
    form.hidden = false;
    follow();
  }
  begin();
})();
