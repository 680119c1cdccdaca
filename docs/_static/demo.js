// A button that becomes the page of a demo, in a frame. Not here: the demo.
"use strict";

document.querySelectorAll("button[data-frame]").forEach((button) => button.addEventListener("click", () => {
  if (location.protocol === "file:") {
    button.nextElementSibling.textContent = "A browser runs no model in a page that it opened from a file. Serve the site: python -m http.server -d build/site";
    return;
  }
  const frame = Object.assign(document.createElement("iframe"), { src: button.dataset.frame, title: "Draw a digit", width: 500, height: 380 });
  frame.style.maxWidth = "100%";
  button.replaceWith(frame);
}));
