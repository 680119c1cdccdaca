// Sorts the tables of benchmarks: a click on a column's heading sorts by it, a second click reverses the order.
"use strict";

(() => {
  const value = (row, column) => {
    const text = row.cells[column].textContent;
    const number = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };

  const order = (one, other) => {
    if (one === "" || other === "") return (one === "") - (other === "");
    if (typeof one === typeof other && typeof one === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  };

  const sort = (table, column, descending) => {
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [value(row, column), row]);
    keyed.sort(([one], [other]) => (descending ? -order(one, other) : order(one, other)));
    body.append(...keyed.map(([, row]) => row));
  };

  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    for (const [column, head] of heads.entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const descending = head.ariaSort === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.ariaSort = descending ? "descending" : "ascending";
        sort(table, column, descending);
      });
    }
  };

  document.querySelectorAll(".finding-table table").forEach(sortable);
})();
