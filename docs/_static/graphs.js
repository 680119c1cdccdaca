// Zoom and pan for graphs, and details of the box under the pointer or in focus.
"use strict";

(() => {
  const STEP = 1.25, LEAST = 0.2, MOST = 4;

  for (const frame of document.querySelectorAll(".graph-frame")) enliven(frame);

  function enliven(frame) {
    const picture = frame.querySelector("svg");
    const zoom = (factor, x, y) => zoomed(frame, picture, factor, x, y);
    const buttons = { "Zoom out": ["−", () => zoom(1 / STEP)], "Zoom in": ["+", () => zoom(STEP)], "Fit to the page": ["fit", () => fit(frame, picture)] };
    const bar = document.createElement("div");
    bar.className = "graph-bar";
    for (const [name, [sign, act]] of Object.entries(buttons)) bar.append(button(name, sign, act));
    const said = document.createElement("p");
    said.className = "graph-said";
    said.textContent = "Point at a box, or Tab to one and use the arrow keys.";
    frame.before(bar);
    frame.after(said);
    frame.addEventListener("keydown", (event) => {
      const key = { "+": "Zoom in", "=": "Zoom in", "-": "Zoom out", 0: "Fit to the page" }[event.key];
      if (!key || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      buttons[key][1]();
    });
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls; a pinch on a touchpad sets ctrlKey
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 200), event.clientX, event.clientY);
    }, { passive: false });
    pinched(frame, zoom);
    dragged(frame);
    startAtTheInput(frame, picture);
    pointedAt(picture, said);
  }

  function button(name, sign, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = sign;
    made.title = name;
    made.setAttribute("aria-label", name);
    made.addEventListener("click", act);
    return made;
  }

  // Keeps the point at (x, y), or the centre, in position.
  function zoomed(frame, picture, factor, x, y) {
    const seen = frame.getBoundingClientRect(), before = picture.getBoundingClientRect(), natural = picture.viewBox.baseVal.width;
    const width = natural * Math.min(MOST, Math.max(LEAST, (before.width * factor) / natural));
    x ??= seen.left + seen.width / 2;
    y ??= seen.top + Math.min(seen.height, innerHeight) / 2;
    const across = (x - before.left) / before.width, down = (y - before.top) / before.height;
    Object.assign(picture.style, { width: `${width}px`, minWidth: 0, maxWidth: "none" });
    const after = picture.getBoundingClientRect();
    frame.scrollLeft += after.left + across * after.width - x;
    frame.scrollTop += after.top + down * after.height - y;
  }

  function fit(frame, picture) {
    Object.assign(picture.style, { width: "100%", minWidth: 0, maxWidth: `${picture.viewBox.baseVal.width}px` });
  }

  // Scrolls a graph that is wider than the page to its first box. In a hidden tab it doesn't have a width yet.
  function startAtTheInput(frame, picture) {
    const watch = new ResizeObserver(() => {
      if (!frame.clientWidth) return;
      const seen = frame.getBoundingClientRect(), first = picture.querySelector("g").getBoundingClientRect();
      frame.scrollLeft += first.left + first.width / 2 - seen.left - seen.width / 2;
      watch.disconnect();
    });
    watch.observe(frame);
  }

  function pinched(frame, zoom) {
    let apart = 0;
    const distance = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    frame.addEventListener("touchmove", (event) => {
      if (event.touches.length !== 2) return void (apart = 0);
      event.preventDefault();
      const [a, b] = event.touches, now = distance([a, b]);
      if (apart) zoom(now / apart, (a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2);
      apart = now;
    }, { passive: false });
    frame.addEventListener("touchend", () => (apart = 0));
  }

  function dragged(frame) {
    let held = false;
    frame.addEventListener("pointerdown", (event) => (held = event.pointerType === "mouse" && event.button === 0));
    addEventListener("pointerup", () => (held = false));
    frame.addEventListener("pointermove", (event) => held && frame.scrollBy(-event.movementX, -event.movementY));
  }

  function pointedAt(picture, said) {
    const boxes = [...picture.querySelectorAll("g")], arrows = [...picture.querySelectorAll("path[data-ends]")];
    const show = (box) => {
      said.textContent = box.querySelector("title").textContent.replaceAll("\n", " · ");
      const at = String(boxes.indexOf(box));
      boxes.forEach((other) => other.classList.toggle("lit", other === box));
      arrows.forEach((arrow) => arrow.classList.toggle("lit", arrow.dataset.ends.split(" ").includes(at)));
    };
    const hit = (event) => event.target.closest("g");
    boxes.forEach((box, at) => box.setAttribute("tabindex", at ? -1 : 0)); // one stop for Tab; arrow keys from there
    for (const kind of ["pointerover", "click", "focusin"]) picture.addEventListener(kind, (event) => hit(event) && show(hit(event)));
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key], next = boxes[boxes.indexOf(hit(event)) + step];
      if (!step) return;
      event.preventDefault();
      next?.focus();
      if (next) boxes.forEach((box) => box.setAttribute("tabindex", box === next ? 0 : -1));
    });
  }
})();
