// The page: reads the strokes on a canvas, and lets the model recognise the digit. The model includes the preprocessing.
import * as ort from "./ort.wasm.min.mjs";

ort.env.wasm.numThreads = 1; // more threads need headers that most servers don't send

const [board, small] = ["board", "small"].map((id) => document.getElementById(id));
const pen = board.getContext("2d", { willReadFrequently: true });
const session = await ort.InferenceSession.create("digits.onnx");
let last = Promise.resolve();
let asked = 0;

/** Returns the opacity of each pixel from 0 to 1, the input of the model: one image of the canvas's size. */
function ink() {
  const { data, width, height } = pen.getImageData(0, 0, board.width, board.height);
  const opacity = Float32Array.from({ length: width * height }, (_, i) => data[4 * i + 3] / 255);
  return new ort.Tensor("float32", opacity, [1, height, width]);
}

async function recognise(number) {
  const { scores, image } = await session.run({ ink: ink() });
  const blank = image.data.every((value) => value === 0);
  document.getElementById("digit").textContent = blank ? "" : scores.data.indexOf(Math.max(...scores.data));
  paint(image.data);
  if (number === asked) document.body.dataset.scores = JSON.stringify([...scores.data]);
}

/** Shows the 8×8 values from 0 to 16 as grey levels. */
function paint(values) {
  const gray = small.getContext("2d").createImageData(8, 8);
  values.forEach((value, i) => gray.data.set([0, 0, 0, Math.round((255 * value) / 16)], 4 * i));
  small.getContext("2d").putImageData(gray, 0, 0);
}

/** Queues the runs, because a session runs only one call at a time. */
function recogniseNext() {
  const number = ++asked;
  delete document.body.dataset.scores;
  last = last.then(() => recognise(number));
}

function begin(event) {
  board.setPointerCapture(event.pointerId);
  Object.assign(pen, { lineWidth: 24, lineCap: "round", lineJoin: "round" });
  pen.beginPath();
  draw(event);
}

function draw(event) {
  if (event.buttons === 0) return;
  pen.lineTo(event.offsetX, event.offsetY);
  pen.stroke();
}

function clear() {
  pen.clearRect(0, 0, board.width, board.height);
  recogniseNext();
}

board.addEventListener("pointerdown", begin);
board.addEventListener("pointermove", draw);
board.addEventListener("pointerup", recogniseNext);
document.getElementById("clear").addEventListener("click", clear);
document.body.dataset.ready = "yes";
