// How the site's search ranks: lessons and recipes first, the page of an error before them only where its pattern or its title is in the query.
// Not here: knownErrors, the patterns by page, and wishes, what readers type, by page. They are put before it when the site is built.
"use strict";

// "quantize" and "quantise" find the same: what is looked for is the beginning that they share. Others stay: the index has stems, and that of
// "specialized" is shorter than such a beginning.
var oneSpelling = (term) => term.replace(/^(quanti|optimi)[sz](e|ed|es|er|ers|ing|ation|ations)$/i, "$1");

var splitQuery = (query) => query.split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu).filter((term) => term).map(oneSpelling);

var firstPages = [
  [/sg_execution_times$|^(CHANGELOG|CONTRIBUTING)$/, -40],
  [/^tutorials\/101_|^generated\/gallery\/\w+\/(simple_case|first_graph)$/, 42],
  [/^tutorials\/\d/, 30],
  [/^generated\/gallery\//, 28],
  [/^generated\/benchmarks\//, 18],
  [/^docs\/(support|outcomes|doctor|to_onnx)/, 10],
  [/^generated\/errors\//, -5],
];

// How much of a query stands in the name of a page.
var named = (page, query) => {
  const name = page.split("/").at(-1).toLowerCase().split("_");
  const terms = splitQuery(query.toLowerCase()).filter((term) => term.length > 2);
  return terms.filter((term) => name.includes(term)).length / (terms.length || 1);
};

// How well a query fits what readers type to find this page (docs/data/wishes.csv): 1 when they type the same.
var wished = (page, query) => {
  const terms = splitQuery(query.toLowerCase());
  const fits = (wish) => {
    const words = splitQuery(wish.toLowerCase());
    const both = terms.filter((term) => words.includes(term)).length;
    return (both / (terms.length || 1)) ** 2 * (0.75 + both / words.length / 4);
  };
  return Math.max(0, ...(wishes[page] ?? []).map(fits));
};

var plain = (text) => text.toLowerCase().replace(/[^\p{Letter}\p{Number}]+/gu, " ").trim();

var Scorer = {
  score: ([page, title, , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") ?? "";
    const pattern = knownErrors[page]?.replaceAll("[^\\n]", ".").replaceAll("\\n", "\\s+"); // a browser makes one line of what is pasted
    const match = pattern ? new RegExp(pattern).exec(query) : null;
    const first = firstPages.find(([pages]) => pages.test(page))?.[1] ?? 0;
    const course = first > 10 ? 40 * named(page, query) ** 2 : 0;
    const typed = 45 * wished(page, query);
    const titled = page in knownErrors && plain(query) === plain(title) ? 300 : 0;
    return score + first + course + typed + titled + (match?.[0].length ? 200 + match[0].length : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 40,
  partialTitle: 20,
  term: 5,
  partialTerm: 2,
};
