// The filter of the recipes: one choice for each facet, stored in the address, for example #api=to_onnx&symptom=wrong.
"use strict";

(() => {
  const filter = document.querySelector(".recipe-filter");
  if (!filter) return;
  const chips = [...filter.querySelectorAll("button")];
  const rows = [...document.querySelectorAll(".recipe-list > li")];
  const chosen = new Map();

  for (const chip of chips)
    chip.addEventListener("click", () => {
      const { facet, tag } = chip.dataset;
      if (chosen.get(facet) === tag) chosen.delete(facet);
      else chosen.set(facet, tag);
      const hash = [...chosen].map(([name, value]) => `${name}=${value}`).join("&");
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
      show();
    });
  addEventListener("hashchange", readAddress);
  readAddress();

  function readAddress() {
    if (location.hash && !location.hash.includes("=")) return; // a link to a group
    chosen.clear();
    for (const [facet, tag] of new URLSearchParams(location.hash.slice(1)))
      if (chips.some((chip) => chip.dataset.facet === facet && chip.dataset.tag === tag)) chosen.set(facet, tag);
    show();
  }

  function show() {
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chosen.get(chip.dataset.facet) === chip.dataset.tag));
    const wanted = [...chosen].map((pair) => pair.join("="));
    for (const row of rows) row.hidden = !wanted.every((tag) => row.dataset.tags.split(" ").includes(tag));
    for (const group of document.querySelectorAll(".recipe-group")) group.hidden = !group.querySelector("li[data-tags]:not([hidden])");
    const left = rows.filter((row) => !row.hidden).length;
    filter.querySelector(".recipe-count").textContent = `${left} of ${rows.length} recipes`;
  }
})();
