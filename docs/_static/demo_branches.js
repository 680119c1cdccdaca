// The demo of two branches: runs two models at the slider's value and shows which branch ran. The page contains the models and stored outputs.
"use strict";

(() => {
  const demo = document.getElementById("demo-branches");
  if (!demo) return;
  const data = JSON.parse(document.getElementById("demo-branches-data").textContent);
  const slider = document.getElementById("demo-branches-value");
  let files = null;
  let asked = 0;

  async function answer({ ort, session }, value) {
    const x = new ort.Tensor("float32", Float32Array.of(value, ...data.rest), [1, 1 + data.rest.length]);
    const [numbers, test] = Object.values(await session.run({ [session.inputNames[0]]: x }));
    return { numbers: [...numbers.data].map((n) => Math.round(n * 1e4) / 1e4), branch: test ? Number(!test.data[0]) : 0 };
  }

  async function run(value) {
    files ??= Promise.all(data.files.map((file) => runsHere.session(file)));
    const answers = [];
    for (const file of await files) answers.push(await answer(file, value));
    return answers;
  }

  function showNumbers(part, numbers) {
    const cells = numbers.map((n) => Object.assign(document.createElement("span"), { textContent: n }));
    part.querySelector(".demo-numbers").replaceChildren(...cells);
  }

  function showFile({ name }, { numbers, branch }, wanted) {
    const part = [...demo.querySelectorAll("[data-of]")].find((element) => element.dataset.of === name);
    const wrong = numbers.some((n, place) => Math.abs(n - wanted[place]) > 2e-4);
    showNumbers(part, numbers);
    part.dataset.outcome = wrong ? "wrong" : "right";
    part.querySelector(".demo-verdict").textContent = wrong ? "Wrong. The export warned; the file raises no error." : "Right.";
    part.querySelectorAll(".demo-branches li").forEach((item, place) => {
      item.classList.toggle("runs", place === branch);
      item.querySelector(".demo-state").textContent = place === branch ? " ran" : "";
    });
  }

  function show(place, answers) {
    demo.querySelectorAll("[data-shown], #demo-branches-shown").forEach((element) => { element.textContent = data.values[place].toFixed(2); });
    showNumbers(demo.querySelector('[data-of="eager"]'), data.eager[place]);
    data.files.forEach((file, number) => showFile(file, answers[number], data.eager[place]));
    demo.querySelectorAll(".demo-all tr").forEach((row) => [...row.children].forEach((cell, at) => cell.classList.toggle("now", at === place + 1)));
  }

  async function moved() {
    const place = Number(slider.value);
    const number = ++asked;
    show(place, data.files.map(({ answers }) => answers[place]));
    if (!runsHere.published) return;
    const source = demo.querySelector(".demo-source");
    try {
      const answers = await run(data.values[place]);
      if (number !== asked) return;
      show(place, answers);
      source.textContent = "Computed in this page by ONNX Runtime. The condition is an extra output of the model here, so the page knows which branch ran. The outputs of PyTorch are stored.";
      demo.dataset.computed = place;
    } catch (error) {
      source.textContent = runsHere.failed(error);
    }
  }

  slider.addEventListener("input", moved);
  show(Number(slider.value), data.files.map(({ answers }) => answers[Number(slider.value)]));
})();
