// Adds the kind of page to each result of the search and, when the result comes into view, a whole sentence: the one with the most words of
// the query, otherwise the page's description.
"use strict";

(() => {
  const LONGEST = 260;
  const ASIDE = "pre, table, nav, footer, script, .admonition, .sphx-glr-download-link-note, .get-it, .page-demo, form";
  const KINDS = [
    [/^tutorials\/\d/, "Lesson"], [/^generated\/gallery\/./, "Recipe"], [/^generated\/errors\//, "Error"], [/^generated\/benchmarks\/./, "Benchmark"],
    [/^docs\/paths\//, "Path"], [/^_modules\//, "Source"], [/./, "Docs"],
  ];
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const plain = (word) => word.toLowerCase().replace(/(?<=.{3})s$/, "");
  const words = (query.match(/[\p{Letter}\p{Number}_]+/gu) ?? []).filter((word) => word.length > 1).map(plain); // nothing to escape in them
  const found = new RegExp(`((?:${words.join("|") || "$"})s?)`, "gi");

  const sentencesOf = (part) => [...part.querySelectorAll("p, li, dd")]
    .filter((block) => !block.closest(ASIDE) && !block.querySelector("p, li, pre, table"))
    .flatMap((block) => block.textContent.replace(/\s+/g, " ").trim().split(/(?<=[.!?]) (?=\P{Lowercase_Letter})/u))
    .filter((sentence) => sentence.length > 25 && sentence.length < LONGEST && /^(?!Next:|You need).*[.!?]$/.test(sentence));

  const wordsIn = (sentence) => new Set(sentence.match(found)?.map(plain)).size;

  function summarise(text, anchor) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const main = page.querySelector("main article") ?? page.body;
    const section = anchor ? page.getElementById(anchor) : null;
    const description = page.querySelector("meta[name=description]")?.content ?? "";
    const [best] = sentencesOf(section ?? main).sort((one, other) => wordsIn(other) - wordsIn(one));
    if (best && (section || wordsIn(best) > wordsIn(description))) return best;
    return description.replace(/(?<=[.!?]) [^.!?]*\.\.\.$/, ""); // it is cut after 200 characters
  }

  function marked(sentence) {
    const line = document.createElement("p");
    line.className = "context";
    line.append(...sentence.split(found).map((part, place) => {
      return place % 2 ? Object.assign(document.createElement("strong"), { textContent: part }) : part;
    }));
    return line;
  }

  async function addSentence(item) {
    const { href, hash } = item.querySelector("a");
    const answer = await fetch(href);
    if (answer.ok) item.append(marked(summarise(await answer.text(), decodeURIComponent(hash.slice(1)))));
  }

  const seen = new IntersectionObserver((entries) => entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => {
    seen.unobserve(target);
    addSentence(target);
  }));

  function prepare(item) {
    const path = item.querySelector("a").href.replace(root.href, "");
    const [, kind] = KINDS.find(([pattern]) => pattern.test(path));
    item.prepend(Object.assign(document.createElement("span"), { className: "result-kind", textContent: kind }));
    if (!item.querySelector("a + span")) seen.observe(item); // an object of the API has a description
  }

  if (location.protocol === "file:") return; // a page opened from a file can't read others
  new MutationObserver((changes) => changes.flatMap(({ addedNodes }) => [...addedNodes]).filter(({ nodeName }) => nodeName === "LI").forEach(prepare))
    .observe(document.getElementById("search-results"), { childList: true, subtree: true });
})();
