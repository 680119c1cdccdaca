// Finds the page of a pasted error: by its pattern, else by the same message, else by similar words (marked as a guess), else advice.
// The page contains the patterns. The fixes (docs/_ext/error_fixes.py) and the weights of words (docs/_ext/error_box.py) are loaded when needed.
"use strict";

(() => {
  const box = document.getElementById("error-message");
  if (!box) return;
  const files = document.currentScript.src;
  const found = document.getElementById("error-found");
  const { errors: known, quoted, numbers } = JSON.parse(document.getElementById("error-patterns").textContent);
  const rows = [...document.querySelectorAll("table tr:has(a[href*='generated/errors/'])")];
  const loaded = {};

  const load = (name) => loaded[name] ??= fetch(new URL(name, files)).then((answer) => answer.json());

  const relaxed = (pattern) => pattern.replaceAll("[^\\n]", ".").replaceAll(/\\n(?![?*])/g, "\\s+"); // browsers turn line breaks in an address into spaces

  const match = (pattern, text) => [pattern, relaxed(pattern)].map((p) => (new RegExp(p).exec(text) ?? [""])[0])
    .reduce((one, other) => other.length > one.length ? other : one);

  // Same rules as exportlab/errors/known.py: certain matches, and other errors with the same message.
  const recognised = (text) => {
    const code = [...text.matchAll(new RegExp(quoted, "g"))].map(([, line]) => line).join("\n");
    const matched = known
      .map((error) => ({ ...error, page: error.page.replace("../", ""), match: match(error.pattern, text) }))
      .filter((error) => error.match);
    const kin = known.filter((error) => error.kin && new RegExp(error.kin).test(text));
    const isSure = (error) => (!error.wraps || (matched.length === 1 && !kin.length))
      && (error.op ? new RegExp(error.op, "m").test(code) : !new RegExp(`^(?:${numbers})`).test(error.match));
    const rank = (error) => [Number(error.wraps ?? false), Number(!(isSure(error) && error.op)), -error.match.length];
    const ordered = matched.sort((one, other) => rank(one).map((number, i) => number - rank(other)[i]).find((number) => number) ?? 0);
    const others = kin.filter(({ title }) => !matched.some((error) => error.title === title));
    return {
      certain: ordered.filter(isSure).slice(0, 5),
      unsure: [...ordered.filter((error) => !isSure(error)), ...others.map((error) => ({ ...error, page: error.page.replace("../", "") }))].slice(0, 5),
    };
  };

  // Same rules as docs/_ext/error_box.py.
  const AWAY = /https?:\/\/\S+|\S*[/\\]\S*[/\\]\S*|^\s*File .*$|0x[0-9a-f]+/gm;
  const LETTERS = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g;

  const plain = (word) => word.replace(/^(.{4,})is(e|ed|es|er|ers|ing|ation)$/, "$1iz$2").replace(/^(.{3,}[^s])s$/, "$1");

  const words = (text, { common }) => (text.replace(AWAY, " ").match(LETTERS) ?? [])
    .filter((word) => word.length > 1 && !common.includes(word.toLowerCase()))
    .map((word) => plain(word.toLowerCase()));

  const weighed = (text, data) => {
    const { rarity, unknown } = data;
    const singles = words(text, data);
    const counts = new Map();
    for (const word of [...singles, ...singles.slice(1).map((word, place) => `${singles[place]} ${word}`)]) {
      if (word in rarity || !word.includes(" ")) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    const weights = [...counts].map(([word, count]) => [word, (1 + Math.log(count)) * (rarity[word] ?? unknown)]);
    const length = Math.hypot(...weights.map(([, weight]) => weight)) || 1;
    return weights.map(([word, weight]) => [word, weight / length]);
  };

  const ranked = (text, data) => {
    const parts = [text, ...text.split("\n").filter((line) => words(line, data).length > 3)].map((part) => weighed(part, data));
    const score = (page) => Math.max(...parts.map((part) => part.reduce((sum, [word, weight]) => sum + weight * (page.weights[word] ?? 0), 0)));
    return data.pages.map((page) => ({ ...page, score: score(page) })).sort((one, other) => other.score - one.score);
  };

  const item = ({ page, title, stage, kind, score }) => {
    const link = Object.assign(document.createElement("a"), { href: new URL(`../${page}`, files), textContent: title });
    const line = document.createElement("li");
    line.append(link, ` (${score === undefined ? stage : `${kind}, likeness ${score.toFixed(2)}`})`);
    return line;
  };

  const tell = (sentence, pages, state) => {
    const said = Object.assign(document.createElement("p"), { textContent: sentence });
    const list = document.createElement("ol");
    list.append(...pages.map(item));
    found.replaceChildren(said, ...(pages.length ? [list] : []));
    found.dataset.state = state;
  };

  /** Shows the first fix below the first error. */
  const showFix = async ({ page }) => {
    const place = found.querySelector("li");
    const fix = (await load("error-fixes.json"))[page];
    if (!fix || !place.isConnected) return; // an error that is fixed upstream; another message was typed
    place.append(Object.assign(document.createElement("p"), { className: "first-fix", textContent: `Fix: ${fix.name}.` }));
    if (!fix.code) return;
    const code = Object.assign(document.createElement("pre"), { tabIndex: 0, textContent: fix.code });
    code.setAttribute("aria-label", "Code of the fix");
    code.setAttribute("role", "region");
    place.append(code);
  };

  const guess = (pages, { near, worth }) => {
    const errors = pages.filter(({ kind, score }) => kind === "error" && score >= near).slice(0, 3);
    if (errors.length) return tell("No known error has exactly this message. These errors have the most similar words (likeness 1 means the same words):", errors, "near");
    const reading = pages.filter(({ kind, score }) => kind !== "error" && score >= worth).slice(0, 3);
    if (reading.length) return tell("No known error is similar. These pages are about the same words:", reading, "reading");
    return tell("Nothing similar was found. The tables below list all known errors.", [], "nothing");
  };

  const filter = (text, pages) => {
    const typed = text.toLowerCase();
    const kept = rows.filter((row) => !text || row.textContent.toLowerCase().includes(typed) || pages.some((page) => row.querySelector("a").href.endsWith(page)));
    rows.forEach((row) => { row.hidden = kept.length > 0 && !kept.includes(row); });
  };

  const show = async () => {
    const text = box.value.trim();
    if (!text) {
      filter("", []);
      return tell("", [], "");
    }
    const { certain, unsure } = recognised(text);
    const errors = certain.length ? certain : unsure;
    if (errors.length) {
      filter(text, errors.map(({ page }) => page));
      if (certain.length) {
        tell(errors.length > 1 ? "Known errors, the closest match first:" : "Known error:", errors, "certain");
        return showFix(errors[0]);
      }
      return tell("Several known errors have this message. Compare them with the line of your code:", errors, "unsure");
    }
    const data = await load("error-box.json");
    if (text !== box.value.trim()) return undefined;
    const pages = ranked(text, data);
    filter(text, pages.filter(({ score }) => score >= data.near / 2).map(({ page }) => page));
    return guess(pages, data);
  };

  const share = () => {
    const address = new URL(location.href);
    const text = box.value.trim();
    if (text && text.length < 2000) address.searchParams.set("q", text);
    else address.searchParams.delete("q");
    history.replaceState(null, "", address);
  };

  box.addEventListener("input", () => { share(); show(); });
  box.form.addEventListener("submit", (event) => event.preventDefault());
  box.value = new URLSearchParams(location.search).get("q") ?? box.value;
  if (location.search) history.replaceState(null, "", location.pathname); // otherwise Sphinx would search for it on this page, and fail
  addEventListener("load", share);
  show();
})();
