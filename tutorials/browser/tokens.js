// A byte-level tokenizer from its tokenizer.json: text to numbers, and back. It cuts before each space, as that of lesson 310 does.

/** The letter that stands for each byte in such a file: its own, where it prints, otherwise one beyond 255. */
function lettersOfBytes() {
  let next = 256;
  const printed = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printed(byte) ? byte : next++));
}

const LETTERS = lettersOfBytes();

export async function tokenizerFrom(address) {
  const { model } = await (await fetch(address)).json();
  const numbers = new Map(Object.entries(model.vocab));
  const tokens = [];
  numbers.forEach((number, token) => (tokens[number] = token)); // an object of JavaScript has keys such as "10" first

  /** Merges two neighbours as long as there are two that are a token; of several, the two that the training merged first. */
  function merged(parts) {
    for (;;) {
      const pairs = parts.slice(1).map((part, i) => numbers.get(parts[i] + part) ?? Infinity);
      const lowest = Math.min(...pairs);
      if (lowest === Infinity) return parts;
      const place = pairs.indexOf(lowest);
      parts.splice(place, 2, parts[place] + parts[place + 1]);
    }
  }

  return {
    encode(text) {
      const pieces = text.replace(/^(?! )/, " ").split(/(?= )/);
      const letters = pieces.map((piece) => Array.from(new TextEncoder().encode(piece), (byte) => LETTERS[byte]));
      return letters.flatMap(merged).map((token) => numbers.get(token));
    },
    decode(chosen) {
      const letters = [...chosen.map((number) => tokens[number]).join("")];
      return new TextDecoder().decode(Uint8Array.from(letters, (letter) => LETTERS.indexOf(letter)));
    },
  };
}
