// Starts ONNX Runtime in a page, once, when a demo first uses it; where the site has none, the page shows what was stored. Not here: the demos.
"use strict";

const runsHere = (() => {
  const beside = new URL(".", document.currentScript.src);
  const published = window.runtimePublished === true && location.protocol !== "file:"; // runtime.js, which the build writes
  const absent = location.protocol === "file:"
    ? "A browser cannot run a model in a page that was opened from a file, so this page shows stored answers."
    : "This site was built without ONNX Runtime for browsers, so this page shows stored answers.";
  let runtime = null;

  async function load() {
    const ort = await import(new URL("ort/ort.wasm.min.mjs", beside).href);
    ort.env.wasm.numThreads = 1; // more than one needs headers that most servers do not send
    return ort;
  }

  document.querySelectorAll("[data-loads-runtime]").forEach((note) => { note.textContent = published ? note.dataset.loadsRuntime : absent; });

  return {
    published,
    /** What a page shows beside stored answers: why no model runs here. */
    absent,
    /** The same, where the runtime is there and did not start; the error is for the console, not for the reader. */
    failed(error) {
      console.warn(error);
      return "ONNX Runtime could not be started in this browser. What you see was stored when this site was built.";
    },
    /** A runtime, and the session of a file: its bytes in base64, or its place beside this script. */
    async session({ file, address }) {
      const ort = await (runtime ??= load());
      const model = file ? Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0)) : new URL(address, beside).href;
      return { ort, session: await ort.InferenceSession.create(model) };
    },
  };
})();
