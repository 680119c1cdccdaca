// The demo of a language model: greedy decoding, one character per call, with the cache as input and output of the model.
"use strict";

(() => {
  const demo = document.getElementById("demo-sentence");
  if (!demo) return;
  const data = JSON.parse(document.getElementById("demo-sentence-data").textContent);
  const [input, written, counts, source] = ["#demo-sentence-start", ".demo-written", ".demo-counts", ".demo-source"].map((s) => demo.querySelector(s));
  const kinds = Array.from({ length: data.layers }, (_, layer) => [`${layer}.key`, `${layer}.value`]).flat();
  let loaded = null;
  let asked = 0;

  const empty = (ort) => Object.fromEntries(kinds.map((kind) => [`past.${kind}`, new ort.Tensor("float32", new Float32Array(0), [1, data.heads, 0, data.head])]));

  const tokens = (ort, text) => new ort.Tensor("int64", BigInt64Array.from([...text], (letter) => BigInt(data.letters.indexOf(letter))), [1, text.length]);

  /** The most likely character after the last position. */
  function best(scores) {
    const last = scores.data.slice(-data.letters.length);
    return data.letters[last.indexOf(Math.max(...last))];
  }

  /** Calls `each` with each character, and the number of positions that the model processed for it. The first call processes the whole start. */
  async function complete(start, each) {
    const { ort, session } = await (loaded ??= runsHere.session({ address: "demos/sentence.onnx" }));
    let cache = empty(ort);
    for (let next = start, step = 0; step < data.length; step += 1) {
      const found = await session.run({ ids: tokens(ort, next), ...cache });
      cache = Object.fromEntries(kinds.map((kind) => [`past.${kind}`, found[`present.${kind}`]]));
      const read = next.length;
      next = best(found.scores);
      if (!each(next, read)) return;
    }
  }

  function show(start, rest) {
    written.querySelector("b").textContent = start;
    written.querySelector("span").textContent = rest;
  }

  function showCounts(start, steps, read) {
    const without = steps * start.length + (steps * (steps - 1)) / 2;
    const cache = data.layers * 2 * data.heads * data.head * (start.length + steps - 1);
    counts.textContent = `${steps} calls processed ${read} characters; without a cache, it would be ${without}. The cache contains ${cache} numbers.`;
  }

  const refusal = (start) => {
    const strange = [...start].find((letter) => !data.letters.includes(letter));
    if (start === "") return "Enter at least one character.";
    return strange && `The model does not know “${strange}”, because it was trained only on the Zen of Python.`;
  };

  async function write(start) {
    const number = ++asked;
    ["computed", "stored"].forEach((how) => delete demo.dataset[how]);
    if ((source.textContent = refusal(start) ?? "Loading ONNX Runtime …") !== "Loading ONNX Runtime …") return;
    if (!runsHere.published) return showStored(start, runsHere.absent);
    show(start, "");
    let [rest, read] = ["", 0];
    try {
      await complete(start, (letter, places) => {
        if (number !== asked) return false;
        show(start, (rest += letter));
        showCounts(start, rest.length, (read += places));
        return true;
      });
      if (number === asked) finished(start, rest);
    } catch (error) {
      showStored(start, runsHere.failed(error));
    }
  }

  function showStored(start, why) {
    show(start, data.answers[start] ?? "");
    demo.dataset.stored = start;
    source.textContent = start in data.answers ? why : `${why} No completion is stored for this start.`;
  }

  function finished(start, rest) {
    const stored = data.answers[start];
    const same = stored === undefined ? "" : stored === rest ? " Eager mode without a cache gives the same text." : " Eager mode gives a different text.";
    source.textContent = `Computed in this page by ONNX Runtime.${same}`;
    demo.dataset.computed = start;
  }

  demo.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); write(input.value); });
  demo.querySelectorAll("[data-start]").forEach((button) => button.addEventListener("click", () => { input.value = button.dataset.start; write(input.value); }));
})();
