// A button that is replaced by a frame with the page of a demo.
"use strict";

document.querySelectorAll("button[data-frame]").forEach((button) => button.addEventListener("click", () => {
  if (location.protocol === "file:") {
    button.nextElementSibling.textContent = "Browsers can't run a model in a page opened from a file. Serve the site: python -m http.server -d build/site";
    return;
  }
  const frame = Object.assign(document.createElement("iframe"), { src: button.dataset.frame, title: "Draw a digit", width: 500, height: 380 });
  frame.style.maxWidth = "100%";
  button.replaceWith(frame);
}));
