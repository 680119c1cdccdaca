// The install command of a page: inserts the site's address if others can reach it, and copies the command on a click.
"use strict";

(() => {
  const LOCAL = ["localhost", "127.0.0.1", "[::1]"];
  const isPublished = location.protocol.startsWith("http") && !LOCAL.includes(location.hostname);

  document.addEventListener("DOMContentLoaded", () => {
    for (const command of document.querySelectorAll(".get-it code[data-wheel]")) {
      if (isPublished) insertAddress(command);
      command.after(copier(command));
    }
  });

  function insertAddress(command) {
    const address = new URL(command.dataset.wheel, document.baseURI).href;
    command.textContent = `pip install "exportlab[book] @ ${address}"`;
    command.parentElement.querySelector(".get-file")?.remove();
  }

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
