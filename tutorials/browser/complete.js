// The page: tokenizes the start of a text, lets the model generate tokens, and decodes them. The tokenizer is in tokens.js.
import * as ort from "./ort.wasm.min.mjs";
import { tokenizerFrom } from "./tokens.js";

const STEPS = 40;
const PLACES = 64; // maximum positions of the model
ort.env.wasm.numThreads = 1; // more threads need headers that most servers don't send

const [form, start, written] = ["form", "start", "written"].map((id) => document.getElementById(id));
const tokenizer = await tokenizerFrom("tokenizer.json");
const session = await ort.InferenceSession.create("writer.onnx");

/** Returns an empty cache for one text. The model defines the other sizes. */
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
  form.inert = true; // a session runs only one call at a time
  const read = tokenizer.encode(start.value);
  const fits = read.length + STEPS <= PLACES;
  written.textContent = fits ? await goOn(read) : `The text has ${read.length} tokens; the maximum is ${PLACES - STEPS}.`;
  form.inert = false;
  document.body.dataset.done = JSON.stringify(read);
});
document.body.dataset.ready = "yes";
