// How the site's search ranks: as Sphinx does, but the page of an error whose pattern is in the query comes first, and pages of errors come
// before those that only show a message. Not here: knownErrors, the patterns by page, which are put before it when the site is built.
"use strict";

var Scorer = {
  score: ([page, , , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") ?? "";
    const pattern = knownErrors[page]?.replaceAll("[^\\n]", ".").replaceAll("\\n", "\\s+"); // a browser makes one line of what is pasted
    const match = pattern ? new RegExp(pattern).exec(query) : null;
    return score + (page in knownErrors ? 20 : 0) + (match ? 100 + match[0].length : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
