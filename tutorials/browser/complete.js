// The page: a beginning becomes tokens, the model goes on, the tokens become text. Not here: what a token is.
import * as ort from "./ort.wasm.min.mjs";
import { tokenizerFrom } from "./tokens.js";

const STEPS = 40;
const PLACES = 64; // that the model has learned
ort.env.wasm.numThreads = 1; // more than one needs headers that most servers do not send

const [form, start, written] = ["form", "start", "written"].map((id) => document.getElementById(id));
const tokenizer = await tokenizerFrom("tokenizer.json");
const session = await ort.InferenceSession.create("writer.onnx");

/** A cache of nothing: one text, no places, as large as the file says. */
function emptyCache(name) {
  const [, , ...sizes] = session.inputMetadata.find((input) => input.name === name).shape;
  return new ort.Tensor("float32", [], [1, 0, ...sizes]);
}

async function goOn(read) {
  let [tokens, cache, chosen] = [read, { past_keys: emptyCache("past_keys"), past_values: emptyCache("past_values") }, []];
  while (chosen.length < STEPS) {
    const given = new ort.Tensor("int64", BigInt64Array.from(tokens, BigInt), [1, tokens.length]);
    const { scores, keys, values } = await session.run({ tokens: given, ...cache });
    const last = scores.data.subarray(-scores.dims[2]);
    tokens = [last.indexOf(Math.max(...last))];
    cache = { past_keys: keys, past_values: values };
    chosen.push(...tokens);
  }
  return tokenizer.decode(chosen);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  delete document.body.dataset.done;
  form.inert = true; // a session takes no second call while it is busy
  const read = tokenizer.encode(start.value);
  const fits = read.length + STEPS <= PLACES;
  written.textContent = fits ? await goOn(read) : `That is ${read.length} tokens; the model takes ${PLACES - STEPS}.`;
  form.inert = false;
  document.body.dataset.done = JSON.stringify(read);
});
document.body.dataset.ready = "yes";
