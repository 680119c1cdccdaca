// The demo on the landing page: runs two exports of one model at the slider's batch size. The page contains the exports and eager outputs.
"use strict";

(() => {
  const slider = document.getElementById("instrument-batch");
  if (!slider) return;
  const data = JSON.parse(document.getElementById("instrument-data").textContent);
  const source = document.getElementById("instrument-source");
  const board = slider.closest(".instrument");
  let sessions = null;
  let asked = 0;

  /** Runs each exported model here and returns its outputs, an array of numbers per model. */
  async function run(rows) {
    sessions ??= Promise.all(data.files.map(({ file }) => runsHere.session({ file })));
    const answers = [];
    for (const { ort, session } of await sessions) {
      const x = new ort.Tensor("float32", new Float32Array(rows * data.width).fill(1), [rows, data.width]);
      const found = await session.run({ [session.inputNames[0]]: x });
      answers.push([...found[session.outputNames[0]].data]);
    }
    return answers;
  }

  const stored = (rows) => data.files.map(({ answers }) => new Array(rows * data.width).fill(answers[rows]));

  const cell = (value, differs) => Object.assign(document.createElement("span"), { textContent: value, className: differs ? "differs" : "" });

  function showNumbers(name, numbers, wanted) {
    const part = [...board.querySelectorAll("[data-of]")].find((element) => element.dataset.of === name);
    part.querySelector(".numbers").replaceChildren(...numbers.map((value) => cell(value, value !== wanted)));
    if (name === "eager") return;
    const wrong = numbers.some((value) => value !== wanted);
    part.dataset.outcome = wrong ? "wrong" : "right";
    part.querySelector(".verdict").textContent = wrong ? "Wrong. No error was raised." : "Right.";
  }

  function show(rows, answers) {
    const wanted = data.eager[rows];
    showNumbers("eager", new Array(rows * data.width).fill(wanted), wanted);
    data.files.forEach(({ name }, place) => showNumbers(name, answers[place], wanted));
    board.querySelectorAll("[data-batch]").forEach((td) => td.classList.toggle("now", Number(td.dataset.batch) === rows));
    document.getElementById("instrument-rows").textContent = rows;
  }

  async function moved() {
    const rows = Number(slider.value);
    const number = ++asked;
    show(rows, stored(rows));
    if (!runsHere.published) return;
    try {
      const answers = await run(rows);
      if (number !== asked) return;
      show(rows, answers);
      source.textContent = "Computed in this page by ONNX Runtime.";
      board.dataset.computed = rows;
    } catch (error) {
      source.textContent = runsHere.failed(error);
    }
  }

  slider.addEventListener("input", moved); // the page already shows the results for the slider's first position
})();
