// Tables that fold on a phone; names and keys for what scrolls and folds. Not here: their look (tables_and_code.css).
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
    for (const block of document.querySelectorAll("main :is(pre, table, .output_html)")) {
      if (block.scrollWidth > block.clientWidth + 1) block.tabIndex = 0;
    }
  }

  function named() {
    for (const summary of document.querySelectorAll(".toctree-l1 summary, .toctree-l2 summary")) {
      summary.setAttribute("aria-label", `Pages of ${summary.closest("li").querySelector("a").textContent.trim()}`);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    fold();
    named();
    reachable();
  });
})();
