// The install command of a page: inserts the site's address, and copies the command on a click.
"use strict";

(() => {
  document.addEventListener("DOMContentLoaded", () => {
    for (const command of document.querySelectorAll(".get-it code[data-wheel]")) {
      const address = new URL(command.dataset.wheel, document.baseURI).href;
      command.textContent = `pip install "exportlab[book] @ ${address}"`;
      for (const link of command.parentElement.querySelectorAll("a[download]")) link.previousSibling.remove(), link.remove();
      command.after(copier(command));
    }
  });

  function copier(command) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "copied";
    });
    return button;
  }
})();
