// Starts ONNX Runtime in a page, once, when it is first asked for. Not here: the demos.
"use strict";

const runsHere = (() => {
  const beside = new URL(".", document.currentScript.src);
  let runtime = null;

  async function load() {
    const ort = await import(new URL("ort/ort.wasm.min.mjs", beside).href);
    ort.env.wasm.numThreads = 1; // more than one needs headers that most servers do not send
    return ort;
  }

  return {
    /** A runtime, and the session of a file: its bytes in base64, or its place beside this script. */
    async session({ file, address }) {
      const ort = await (runtime ??= load());
      const model = file ? Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0)) : new URL(address, beside).href;
      return { ort, session: await ort.InferenceSession.create(model) };
    },
    /** What a page says when there is none: what it shows instead, and why. */
    absent: (error) => `ONNX Runtime could not be started here (${error.message}). What you see was stored when this site was built.`,
  };
})();
