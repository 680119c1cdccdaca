// The index of known errors: finds the pages whose pattern is in a pasted message. Not here: the patterns, which the page holds.
"use strict";

(() => {
  const box = document.getElementById("error-message");
  if (!box) return;
  const found = document.getElementById("error-found");
  const known = JSON.parse(document.getElementById("error-patterns").textContent);

  const matches = (text) => known
    .map((error) => ({ ...error, length: (new RegExp(error.pattern).exec(text) ?? [""])[0].length }))
    .filter((error) => error.length)
    .sort((one, other) => other.length - one.length)
    .slice(0, 5);

  const item = ({ page, title, stage }) => {
    const link = Object.assign(document.createElement("a"), { href: page, textContent: title });
    const line = document.createElement("li");
    line.append(link, ` (${stage})`);
    return line;
  };

  const show = () => {
    const text = box.value.trim();
    const errors = text ? matches(text) : [];
    found.replaceChildren(...errors.map(item));
    if (text && !errors.length) found.textContent = "No known error has this message.";
  };
  box.addEventListener("input", show);
  box.form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
