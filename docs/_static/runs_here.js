// Starts ONNX Runtime once, when a demo first uses it. If the site doesn't include it, the page shows stored results.
"use strict";

const runsHere = (() => {
  const beside = new URL(".", document.currentScript.src);
  const published = window.runtimePublished === true && location.protocol !== "file:"; // runtime.js, which the build writes
  const absent = location.protocol === "file:"
    ? "Browsers can't run a model in a page opened from a file, so this page shows stored results."
    : "This site was built without ONNX Runtime for browsers, so this page shows stored results.";
  let runtime = null;

  async function load() {
    const ort = await import(new URL("ort/ort.wasm.min.mjs", beside).href);
    ort.env.wasm.numThreads = 1; // more threads need headers that most servers don't send
    return ort;
  }

  document.querySelectorAll("[data-loads-runtime]").forEach((note) => { note.textContent = published ? note.dataset.loadsRuntime : absent; });

  return {
    published,
    /** The reason why no model runs here, shown next to stored results. */
    absent,
    /** The reason if the runtime failed to start. The error itself goes to the console. */
    failed(error) {
      console.warn(error);
      return "ONNX Runtime could not be started in this browser. The results shown were stored when this site was built.";
    },
    /** Returns the runtime and a session for a model, given as base64 or by its path relative to this script. */
    async session({ file, address }) {
      const ort = await (runtime ??= load());
      const model = file ? Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0)) : new URL(address, beside).href;
      return { ort, session: await ort.InferenceSession.create(model) };
    },
  };
})();
