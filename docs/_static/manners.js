// Aligns numbers in tables, and fits tables to a phone; adds names and keyboard access to scrolling and folding parts, and loads the search index at the first key.
// The styles are in tables_and_code.css.
"use strict";

(() => {
  const NUMBER = /^[-−+±~]?[\d.,]+(e[-+]?\d+)?([-–]\d[\d.,]*)?( ?(x|×|%|ns|µs|ms|s|min|h|B|kB|MB|GB|M|k))?$/;

  function label(table) {
    const names = [...table.querySelectorAll("thead tr:last-child > *")].map((cell) => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, column) => { if (names[column]) cell.dataset.label = names[column]; });
    }
    table.classList.add("folds");
  }

  const textsOf = (table, column) => [...table.tBodies[0].rows].map(({ cells }) => cells[column]?.textContent.trim()).filter((text) => text);

  function alignNumbers(table) {
    [...table.tHead.rows[0].cells].forEach((_, column) => {
      const texts = textsOf(table, column);
      const numbers = texts.filter((text) => NUMBER.test(text));
      if (column && numbers.length > texts.length / 2) [...table.rows].forEach(({ cells }) => cells[column]?.classList.add("number"));
    });
  }

  /** Whether rows are read side by side: several columns of short values. */
  function compares(table) {
    const columns = table.tHead.rows[0].cells.length;
    const texts = [...Array(columns).keys()].slice(1).flatMap((column) => textsOf(table, column));
    return columns > 2 && table.tBodies[0].rows.length > 2 && texts.filter((text) => text.length < 19).length > 0.8 * texts.length;
  }

  /** On a phone, a table of short values scrolls beside its first column, and a table of sentences folds. */
  function arrangeTables() {
    for (const table of document.querySelectorAll("main table:is(.exportlab, .table):not([id], .pivot)")) {
      if (!table.tHead || !table.tBodies.length || table.querySelector("[colspan], [rowspan]")) continue;
      alignNumbers(table);
      if (table.classList.contains("folds")) continue;
      if (compares(table)) table.classList.add("compares");
      else label(table);
    }
  }

  function reachable() {
    for (const block of document.querySelectorAll("main :is(pre, table, .output_html, .matrix-scroll)")) {
      if (block.scrollWidth > block.clientWidth + 1) block.tabIndex = 0;
    }
  }

  function named() {
    for (const summary of document.querySelectorAll(".toctree-l1 summary, .toctree-l2 summary")) {
      summary.setAttribute("aria-label", `Pages of ${summary.closest("li").querySelector("a").textContent.trim()}`);
    }
    for (const summary of document.querySelectorAll(".cell summary[aria-label]")) summary.removeAttribute("aria-label"); // its text is its accessible name
    for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.internal")) { // it covers the card, and its text is hidden
      link.setAttribute("aria-label", link.textContent.trim());
    }
    for (const button of document.querySelectorAll(".search-button-field")) { // its text is hidden on a phone
      button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
    }
  }

  /** Prefetches the index that the search page needs, while the query is typed. */
  function fetchIndex() {
    const href = new URL("searchindex.js", new URL(document.documentElement.dataset.content_root, location.href));
    document.head.append(Object.assign(document.createElement("link"), { rel: "prefetch", as: "script", href }));
  }

  function searched() {
    if (document.querySelector("script[src*='searchindex.js']")) return; // this is the search page
    const once = { once: true };
    const typed = "form.bd-search input, form.asked input";
    document.querySelectorAll(typed).forEach((box) => box.addEventListener("input", fetchIndex, once));
  }

  document.addEventListener("DOMContentLoaded", () => {
    arrangeTables();
    named();
    searched();
    reachable();
  });
})();
