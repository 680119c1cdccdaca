// The page: strokes on a canvas become ink, and the model says which digit they are. Not here: any preprocessing, which is in the model.
import * as ort from "./ort.wasm.min.mjs";

ort.env.wasm.numThreads = 1; // more than one needs headers that most servers do not send

const [board, small] = ["board", "small"].map((id) => document.getElementById(id));
const pen = board.getContext("2d", { willReadFrequently: true });
const session = await ort.InferenceSession.create("digits.onnx");
let last = Promise.resolve();
let asked = 0;

/** How much ink each pixel has, from 0 to 1, as the model takes it: one image of the canvas' size. */
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

/** Shows the 8×8 values, 0 to 16, as gray. */
function paint(values) {
  const gray = small.getContext("2d").createImageData(8, 8);
  values.forEach((value, i) => gray.data.set([0, 0, 0, Math.round((255 * value) / 16)], 4 * i));
  small.getContext("2d").putImageData(gray, 0, 0);
}

/** One run after another: a session takes no second call while it is busy. */
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
