// Folds tables on a phone, adds names and keyboard access to scrolling and folding parts, and loads the search index at the first key.
// The styles are in tables_and_code.css.
"use strict";

(() => {
  function labelled(table) {
    const names = [...table.querySelectorAll("thead tr:last-child > *")].map((cell) => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, column) => { if (names[column]) cell.dataset.label = names[column]; });
    }
    table.classList.add("folds");
  }

  function fold() {
    const plain = "main table:is(.exportlab, .table):not([id])";
    for (const table of document.querySelectorAll(plain)) {
      if (table.tHead && !table.querySelector("tbody [colspan], tbody [rowspan]")) labelled(table);
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
    fold();
    named();
    searched();
    reachable();
  });
})();
