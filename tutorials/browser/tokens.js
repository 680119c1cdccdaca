// A byte-level tokenizer from its tokenizer.json: text to token ids and back. It splits before each space, like the one of lesson 310.

/** The character for each byte in such a file: the byte's own if it is printable, otherwise one beyond 255. */
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
  numbers.forEach((number, token) => (tokens[number] = token)); // JavaScript objects list keys such as "10" first

  /** Merges neighbours while any two form a token, starting with the pair that the training merged first. */
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
